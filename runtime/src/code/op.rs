//! The table of specific instructions, which the interpreter runs.
//!
//! A row is a name, its operands in the first word in parentheses, and those that take words of their own in brackets.
//! `operand.rs` describes the kinds of operands. The numbers of instructions, the types that read their operands from
//! code ([`read`]) and put them there ([`put`]), their lengths and their printed form all come from this table.
//!
//! Rows named `...Wide` have as words what is too large for the first word in the row of that name: arities and indices
//! of tuples with more than 65,535 elements. Rows that end in `R`, `C` and `S` take registers, a constant, and sources
//! of any kind.
#![expect(unsafe_code, reason = "operands are read from code words")]

use super::operand;
use super::operand::{Instruction, Kind, List, Operand, Packed, Put, Sink, Word};
use crate::term::CodeAddress;

macro_rules! specific_ops {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident
            $(( $($p:ident: $pt:ident),+ ))?
            $([ $($w:ident: $wt:ident $(($count:ident))?),+ ])?;
    )*) => {
        /// A specific instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Op { $($(#[doc = $doc])* $name,)* }

        impl Op {
            /// All of them, in order.
            pub(crate) const ALL: &[Op] = &[$(Op::$name,)*];

            /// Its name.
            #[must_use]
            pub(crate) fn name(self) -> &'static str {
                match self { $(Op::$name => stringify!($name),)* }
            }

            /// What it does.
            #[cfg(test)]
            #[must_use]
            pub(crate) fn doc(self) -> &'static str {
                match self { $(Op::$name => concat!($($doc),*).trim_ascii_start(),)* }
            }

            /// Its operands, in order.
            #[must_use]
            pub(crate) fn operands(self) -> &'static [Operand] {
                match self { $(Op::$name => &[
                    $($(Operand {
                        name: stringify!($p),
                        kind: Kind::$pt,
                        is_packed: true,
                        count: None,
                    },)+)?
                    $($(Operand {
                        name: stringify!($w),
                        kind: Kind::$wt,
                        is_packed: false,
                        count: count!($($count)?),
                    },)+)?
                ],)* }
            }

            /// How many words the instruction takes whose code is at `pc`, and whose first word is, or was, `word`: by so
            /// many the interpreter advances.
            ///
            /// # Safety
            /// I1: it is one that the loader has put there.
            pub(crate) unsafe fn words_at(pc: CodeAddress, word: u64) -> usize {
                // SAFETY: by contract.
                match Op::of(word) { $(Op::$name => unsafe { read::$name::at(pc, word) }.words(),)* }
            }
        }

        /// Instructions in code.
        pub(crate) mod read {
            $(
                $(#[doc = $doc])*
                #[derive(Clone, Copy, Debug)]
                #[allow(dead_code, reason = "not every row has operands")]
                pub(crate) struct $name {
                    pub(super) pc: *const u64,
                    pub(super) word: u64,
                }
            )*
        }

        /// Instructions to be put in code.
        pub(crate) mod put {
            use super::operand;
            $(
                $(#[doc = $doc])*
                #[derive(Clone)]
                #[allow(dead_code, reason = "rows like their generic instructions are put operand by operand")]
                pub(crate) struct $name {
                    $($(#[doc = "See the row."] pub(crate) $p: u16,)+)?
                    $($(#[doc = "See the row."] pub(crate) $w: given!($wt $($count)?),)+)?
                }
            )*
        }

        $(const _: () = {
            #[allow(non_camel_case_types, dead_code, reason = "operands by number")]
            enum PackedAt { $($($p,)+)? }
            #[allow(non_camel_case_types, dead_code, reason = "operands by number")]
            enum WordAt { $($($w,)+)? }

            impl Instruction for read::$name {
                #[cfg(test)]
                const OP: Op = Op::$name;
                #[inline(always)]
                unsafe fn at(pc: CodeAddress, word: u64) -> Self {
                    let pc = pc.code();
                    debug_assert_eq!(Op::of(word), Op::$name, "an instruction is read as what it is");
                    Self { pc, word }
                }
                #[inline(always)]
                fn words(self) -> usize {
                    1 $($(+ words!(self, $($count)?))+)?
                }
                #[inline(always)]
                fn next(self) -> CodeAddress {
                    CodeAddress::of(self.pc.wrapping_add(self.words()))
                }
                #[inline(always)]
                fn second_next(self) -> CodeAddress {
                    second_next!(self, $($($w)+)?)
                }
            }

            #[allow(dead_code, reason = "not all are asked for")]
            impl read::$name {
                $($(
                    /// See the row.
                    #[inline(always)]
                    pub(crate) fn $p(self) -> <operand::$pt as Packed>::Value {
                        <operand::$pt as Packed>::unpack((self.word >> (16 + 16 * PackedAt::$p as u64)) as u16)
                    }
                )+)?
                $($(
                    /// See the row.
                    #[inline(always)]
                    pub(crate) fn $w(self) -> value!($wt $($count)?) {
                        // SAFETY: I1: the instruction's words are there, as its row has them.
                        unsafe {
                            let at = self.pc.add(1 + WordAt::$w as usize);
                            read_at!($wt, at, self, $($count)?)
                        }
                    }
                )+)?
            }

            impl Put for put::$name {
                fn put(self, sink: &mut impl Sink) {
                    #[allow(unused_mut, reason = "not every row has packed operands")]
                    let mut packed = [0; 3];
                    $($(packed[PackedAt::$p as usize] = self.$p;)+)?
                    sink.word(Op::$name.word(packed[0], packed[1], packed[2]));
                    $($(put_word!($wt, self.$w, sink, $($count)?);)+)?
                }
            }
        };)*
    };
}

macro_rules! count {
    () => {
        None
    };
    ($count:ident) => {
        Some(stringify!($count))
    };
}

macro_rules! given {
    ($kind:ident) => {
        <operand::$kind as operand::Word>::Given
    };
    ($kind:ident $count:ident) => {
        <operand::$kind as operand::List>::Given
    };
}

macro_rules! value {
    ($kind:ident) => {
        <operand::$kind as Word>::Value
    };
    ($kind:ident $count:ident) => {
        <operand::$kind as List>::Value
    };
}

/// The label in the operand that says where else the instruction leads.
macro_rules! second_next {
    ($self:ident,) => {
        CodeAddress::NULL
    };
    ($self:ident, fail $($rest:ident)*) => {
        $self.fail()
    };
    ($self:ident, wait $($rest:ident)*) => {
        $self.wait()
    };
    ($self:ident, again $($rest:ident)*) => {
        $self.again()
    };
    ($self:ident, $first:ident $($rest:ident)*) => {
        second_next!($self, $($rest)*)
    };
}

macro_rules! words {
    ($self:ident,) => {
        1
    };
    ($self:ident, $count:ident) => {
        $self.$count() as usize
    };
}

macro_rules! read_at {
    ($kind:ident, $at:ident, $self:ident,) => {
        <operand::$kind as Word>::read(*$at)
    };
    ($kind:ident, $at:ident, $self:ident, $count:ident) => {
        <operand::$kind as List>::read($at, $self.$count() as usize)
    };
}

macro_rules! put_word {
    ($kind:ident, $given:expr, $sink:ident,) => {
        <operand::$kind as Word>::put($given, $sink)
    };
    ($kind:ident, $given:expr, $sink:ident, $count:ident) => {
        <operand::$kind as List>::put($given, $sink)
    };
}

specific_ops! {
    /// Head of a function: raises `function_clause`. `native` is where compiled code calls it, `body` what the call then
    /// runs; the breakpoint is 0 for none.
    FuncInfo(arity: Count)[native: Num, body: Num, breakpoint: Num, module: Const, function: Const, arity_word: Num];
    /// An entry under a breakpoint; the breakpoint knows the word that stood here.
    Breakpoint;
    /// Entry of an export without code: calls the process's error handler.
    ErrorHandler;
    /// Entry of a function that is a BIF.
    BifEntry[bif: BifRow];
    /// Entry of a function whose body is a NIF: the head names it.
    NifEntry;
    /// Entry of `erlang:apply/3`.
    ApplyEntry;
    /// Entry of `erlang:apply/2`.
    ApplyFunEntry;
    /// A process's first instruction: `apply(x0, x1, x2)`.
    SpawnEntry;
    /// A process's last one.
    NormalExit;
    /// Where a call that was traced returns to.
    TraceReturn(kind: Count);
    /// A line where a debugger can stop processes.
    LineBreakpointOff(live: Live);
    /// A line where processes stop for a debugger.
    LineBreakpoint(live: Live);
    /// Where the call that stops a process at a line returns to.
    LineBreakpointEnd;

    /// Goes on at a label.
    Jump[target: Label];
    /// From an export's stub to its code.
    JumpTarget;
    /// Local call.
    Call[target: Label];
    /// Local tail call, the frame dropped.
    CallLast(frame: Count)[target: Label];
    /// Local tail call.
    CallOnly[target: Label];
    /// Call of an export.
    CallExt[export: ExportEntry];
    /// Tail call of an export, the frame dropped.
    CallExtLast(frame: Count)[export: ExportEntry];
    /// Tail call of an export.
    CallExtOnly[export: ExportEntry];
    /// Call of a BIF.
    CallBif(arity: Count)[bif: BifRow, export: ExportEntry];
    /// Call of a heavy BIF, which costs no reduction by itself.
    CallHbif(arity: Count)[bif: BifRow, export: ExportEntry];
    /// `apply(x0, x1, x2)` by name, with the arguments as a list.
    CallApply;
    /// `apply(x0, x1, x2)` as a tail call, which drops the frame.
    CallApplyLast(frame: Count);
    /// `apply(x0, x1)`: a fun and its arguments as a list.
    CallApplyFun;
    /// `apply(x0, x1)` as a tail call, which drops the frame.
    CallApplyFunLast(frame: Count);
    /// `erlang:yield/0`.
    Yield;
    /// `erlang:hibernate/0`.
    Hibernate;
    /// `M:F` with so many arguments, the module in the register behind them, the function in the next one.
    Apply(arity: Count);
    /// As `Apply`, in tail position: drops the frame.
    ApplyLast(arity: Count, frame: Count);
    /// Calls a fun.
    CallFun(arity: Count, fun: Reg);
    /// As `CallFun`, in tail position: drops the frame.
    CallFunLast(arity: Count, fun: Reg, frame: Count);
    /// Returns.
    Return;
    /// Drops the frame.
    Deallocate(frame: Count);
    /// Drops the frame and returns.
    DeallocateReturn(frame: Count);
    /// A frame.
    Allocate(frame: Count, live: Live);
    /// A frame, and room on the heap.
    AllocateHeap(frame: Count, live: Live)[need: Need];
    /// Room on the heap.
    TestHeap(live: Live)[need: Need];
    /// Drops the first words of the frame.
    Trim(dropped: Count);
    /// A register becomes nil.
    InitY(dst: Reg);

    /// Register to register.
    MoveRR(src: Reg, dst: Reg);
    /// Two moves.
    Move2RR(src: Reg, dst: Reg)[second: Moves];
    /// Constant to register.
    MoveCR(dst: Reg)[value: Const];
    /// Two registers swap their terms.
    SwapRR(one: Reg, other: Reg);
    /// Head and tail of a cell.
    GetList(list: Reg, head: Reg, tail: Reg);
    /// Head of a cell.
    GetHd(list: Reg, dst: Reg);
    /// Tail of a cell.
    GetTl(list: Reg, dst: Reg);
    /// An element; the index is from 0.
    GetTupleElement(tuple: Reg, dst: Reg, index: Count);
    /// See [`Op::GetTupleElement`].
    GetTupleElementWide(tuple: Reg, dst: Reg)[index: Num];
    /// Two elements side by side.
    GetTupleElement2(tuple: Reg, dst: Reg, index: Count)[second: Dst];
    /// A cell of two registers.
    PutListRR(head: Reg, tail: Reg, dst: Reg);
    /// A cell with a constant head.
    PutListCR(tail: Reg, dst: Reg)[head: Const];
    /// A cell with a constant tail.
    PutListRC(head: Reg, dst: Reg)[tail: Const];
    /// A tuple.
    PutTuple(dst: Reg, arity: Count)[elements: Srcs(arity)];
    /// See [`Op::PutTuple`].
    PutTupleWide(dst: Reg)[arity: Num, elements: Srcs(arity)];
    /// Changes a tuple just made; the index is from 0.
    SetTupleElement(tuple: Reg, index: Count, value: Reg);
    /// See [`Op::SetTupleElement`].
    SetTupleElementWide(tuple: Reg, value: Reg)[index: Num];

    /// Is it an integer?
    IsInteger(src: Reg)[fail: Label];
    /// Is it a float?
    IsFloat(src: Reg)[fail: Label];
    /// Is it an integer or a float?
    IsNumber(src: Reg)[fail: Label];
    /// Is it an atom?
    IsAtom(src: Reg)[fail: Label];
    /// Is it `true` or `false`?
    IsBoolean(src: Reg)[fail: Label];
    /// Is it a pid?
    IsPid(src: Reg)[fail: Label];
    /// Is it a port?
    IsPort(src: Reg)[fail: Label];
    /// Is it a reference?
    IsReference(src: Reg)[fail: Label];
    /// Is it nil?
    IsNil(src: Reg)[fail: Label];
    /// Is it a list?
    IsList(src: Reg)[fail: Label];
    /// Is it a cell?
    IsNonemptyList(src: Reg)[fail: Label];
    /// Is it a tuple?
    IsTuple(src: Reg)[fail: Label];
    /// Has the tuple, which it is, so many elements?
    TestArity(src: Reg, arity: Count)[fail: Label];
    /// Is it a tuple with so many elements?
    IsTupleOfArity(src: Reg, arity: Count)[fail: Label];
    /// See [`Op::IsTupleOfArity`].
    IsTupleOfArityWide(src: Reg)[fail: Label, arity: Num];
    /// Is it a tuple with so many elements, of which this is the first?
    IsTaggedTuple(src: Reg, arity: Count)[fail: Label, tag: Const];
    /// See [`Op::IsTaggedTuple`].
    IsTaggedTupleWide(src: Reg)[fail: Label, arity: Num, tag: Const];
    /// Is it a binary?
    IsBinary(src: Reg)[fail: Label];
    /// Is it a bitstring?
    IsBitstr(src: Reg)[fail: Label];
    /// Is it a map?
    IsMap(src: Reg)[fail: Label];
    /// Is it a fun?
    IsFunction(src: Reg)[fail: Label];
    /// Is it a fun with so many arguments?
    IsFunction2[fail: Label, src: Src, arity: Src];
    /// Is it a cell? And its head and tail.
    IsNonemptyListGetList(list: Reg, head: Reg, tail: Reg)[fail: Label];

    /// `=:=`
    IsEqExactRR(left: Reg, right: Reg)[fail: Label];
    /// `=:=` of an immediate.
    IsEqExactRC(left: Reg)[fail: Label, right: Const];
    /// `=:=`
    IsEqExactSS[fail: Label, left: Src, right: Src];
    /// `=/=` of an immediate.
    IsNeExactRC(left: Reg)[fail: Label, right: Const];
    /// `=/=`
    IsNeExactSS[fail: Label, left: Src, right: Src];
    /// `==`
    IsEqSS[fail: Label, left: Src, right: Src];
    /// `/=`
    IsNeSS[fail: Label, left: Src, right: Src];
    /// `<`
    IsLtRR(left: Reg, right: Reg)[fail: Label];
    /// `<` a small integer.
    IsLtRC(left: Reg)[fail: Label, right: Const];
    /// A small integer `<`.
    IsLtCR(right: Reg)[fail: Label, left: Const];
    /// `<`
    IsLtSS[fail: Label, left: Src, right: Src];
    /// `>=`
    IsGeRR(left: Reg, right: Reg)[fail: Label];
    /// `>=` a small integer.
    IsGeRC(left: Reg)[fail: Label, right: Const];
    /// A small integer `>=`.
    IsGeCR(right: Reg)[fail: Label, left: Const];
    /// `>=`
    IsGeSS[fail: Label, left: Src, right: Src];
    /// Where an immediate leads.
    SelectVal(src: Reg)[otherwise: Label, count: Num, cases: Table(count)];
    /// Where a small integer leads, from the least one on.
    JumpTable(src: Reg)[otherwise: Label, least: Num, count: Num, targets: Labels(count)];
    /// Where a term leads.
    SelectTerm(src: Reg)[otherwise: Label, count: Num, cases: TermLabels(count)];
    /// Where a tuple's arity leads.
    SelectTupleArity(src: Reg)[otherwise: Label, count: Num, cases: ArityLabels(count)];

    /// `+`
    AddRR(left: Reg, right: Reg, dst: Reg)[fail: Label, bif: BifRow, live: Live];
    /// `+` a small integer.
    AddRC(left: Reg, dst: Reg)[fail: Label, bif: BifRow, live: Live, right: Const];
    /// `-`
    SubRR(left: Reg, right: Reg, dst: Reg)[fail: Label, bif: BifRow, live: Live];
    /// `-` a small integer.
    SubRC(left: Reg, dst: Reg)[fail: Label, bif: BifRow, live: Live, right: Const];
    /// `+`, `-`, and the guard BIFs with two arguments that have no row of their own.
    Bif2(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `*`
    Mul(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `left * right + addend` without a term for the product, as OTP's JIT does it.
    MulAdd(dst: Reg, live: Live)[fail: Label, times: BifRow, plus: BifRow, left: Src, right: Src, addend: Src];
    /// `div`
    IntDiv(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `rem`
    Rem(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `band`
    Band(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `bor`
    Bor(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `bxor`
    Bxor(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `bsl`
    Bsl(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// `bsr`
    Bsr(dst: Reg, live: Live)[fail: Label, bif: BifRow, left: Src, right: Src];
    /// Guard BIF without arguments.
    Bif0(dst: Reg)[bif: BifRow];
    /// Guard BIF with one argument.
    Bif1(dst: Reg, live: Live)[fail: Label, bif: BifRow, src: Src];
    /// Guard BIF with three arguments.
    Bif3(dst: Reg, live: Live)[fail: Label, bif: BifRow, first: Src, second: Src, third: Src];
    /// `self()`
    SelfR(dst: Reg);
    /// `element(index, tuple)`
    ElementRC(tuple: Reg, index: Count, dst: Reg)[fail: Label, bif: BifRow];
    /// `hd(list)`
    HdR(list: Reg, dst: Reg)[fail: Label, bif: BifRow];
    /// `tl(list)`
    TlR(list: Reg, dst: Reg)[fail: Label, bif: BifRow];

    /// Boxed float to float register.
    FmoveFrom(src: Reg, dst: FReg);
    /// Float register to a new float.
    FmoveTo(src: FReg, dst: Reg);
    /// Number to float register.
    Fconv(dst: FReg)[src: Src];
    /// `+` of floats.
    Fadd(left: FReg, right: FReg, dst: FReg);
    /// `-` of floats.
    Fsub(left: FReg, right: FReg, dst: FReg);
    /// `*` of floats.
    Fmul(left: FReg, right: FReg, dst: FReg);
    /// `/` of floats.
    Fdiv(left: FReg, right: FReg, dst: FReg);
    /// `-` of a float.
    Fnegate(src: FReg, dst: FReg);

    /// `catch` or `try` begins: where it handles what is raised.
    Catch(tag: Reg)[handler: Label];
    /// `catch` ends.
    CatchEnd(tag: Reg);
    /// `try` ends, nothing was raised.
    TryEnd(tag: Reg);
    /// `try` handles what was raised.
    TryCase(tag: Reg);
    /// Raises `{try_clause, Value}`.
    TryCaseEnd[value: Src];
    /// Raises `{badmatch, Value}`.
    Badmatch[value: Src];
    /// Raises `{case_clause, Value}`.
    CaseEnd[value: Src];
    /// Raises `{badrecord, Value}`.
    Badrecord[value: Src];
    /// Raises `if_clause`.
    IfEnd;
    /// Raises again what was caught.
    Raise[trace: Src, value: Src];
    /// Raises class, value and trace in `x(0)` to `x(2)`.
    RawRaise;
    /// A saved trace in `x(0)` becomes a list.
    BuildStacktrace;

    /// A fun with free variables.
    MakeFun(dst: Reg)[lambda: Lambda, count: Num, free: Srcs(count)];
    /// `x(0) ! x(1)`
    Send[bif: BifRow, export: ExportEntry];
    /// The next message, or where to wait for one.
    LoopRec[wait: Label];
    /// The message does not match: on to the next.
    LoopRecEnd[again: Label];
    /// Waits for a message.
    Wait[again: Label];
    /// Waits for a message until the time is over.
    WaitTimeout[again: Label, time: Src];
    /// The time was over.
    Timeout;
    /// The message matches: it leaves the queue.
    RemoveMessage;
    /// A marker of the queue's end.
    RecvMarkerReserve(dst: Reg);
    /// The marker belongs to a reference.
    RecvMarkerBind[marker: Src, reference: Src];
    /// The marker goes.
    RecvMarkerClear[reference: Src];
    /// Messages before the marker are passed over.
    RecvMarkerUse[reference: Src];

    /// A tuple with some elements changed.
    UpdateRecord[hint: Const, size: Num, src: Src, dst: Dst, count: Num, updates: Updates(count)];
    /// `Map#{Key => Value}`
    PutMapAssoc[fail: Label, map: Src, dst: Dst, live: Live, count: Num, pairs: KeyValues(count)];
    /// `Map#{Key := Value}`
    PutMapExact[fail: Label, map: Src, dst: Dst, live: Live, count: Num, pairs: KeyValues(count)];
    /// Has the map these keys?
    HasMapFields[fail: Label, map: Src, count: Num, keys: Srcs(count)];
    /// The values of these keys.
    GetMapElements[fail: Label, map: Src, count: Num, pairs: KeyDsts(count)];
    /// Takes an integer.
    BsGetInteger[fail: Label, context: Src, live: Live, size: Src, unit: Num, flags: Num, dst: Dst];
    /// Takes a float.
    BsGetFloat[fail: Label, context: Src, live: Live, size: Src, unit: Num, flags: Num, dst: Dst];
    /// Takes a bitstring.
    BsGetBinary[fail: Label, context: Src, live: Live, size: Src, unit: Num, flags: Num, dst: Dst];
    /// Passes over bits.
    BsSkipBits[fail: Label, context: Src, size: Src, unit: Num, flags: Num];
    /// Are so many bits left?
    BsTestTail[fail: Label, context: Src, bits: Num];
    /// Is a multiple of so many bits left?
    BsTestUnit[fail: Label, context: Src, unit: Num];
    /// Do these bits come next?
    BsMatchString[fail: Label, context: Src, bits: Num, string: Bytes];
    /// A binary to append to, in `x(0)`, which has its size.
    BsInitWritable;
    /// Takes a code point.
    BsGetUtf8[fail: Label, context: Src, live: Live, flags: Num, dst: Dst];
    /// Passes over a code point.
    BsSkipUtf8[fail: Label, context: Src, live: Live, flags: Num];
    /// Takes a code point.
    BsGetUtf16[fail: Label, context: Src, live: Live, flags: Num, dst: Dst];
    /// Passes over a code point.
    BsSkipUtf16[fail: Label, context: Src, live: Live, flags: Num];
    /// Takes a code point.
    BsGetUtf32[fail: Label, context: Src, live: Live, flags: Num, dst: Dst];
    /// Passes over a code point.
    BsSkipUtf32[fail: Label, context: Src, live: Live, flags: Num];
    /// The rest of a context, which stays as it is.
    BsGetTail[context: Src, dst: Dst, live: Live];
    /// A match context for a bitstring.
    BsStartMatch[fail: Label, src: Src, live: Live, dst: Dst];
    /// Where a context is.
    BsGetPosition[context: Src, dst: Dst, live: Live];
    /// Sets a context back.
    BsSetPosition[context: Src, position: Src];
    /// A new bitstring of segments.
    BsCreateBin[fail: Label, alloc: Need, live: Live, unit: Num, dst: Dst, count: Num, segments: Segments(count)];
    /// Several fields of fixed sizes at once.
    BsMatch[fail: Label, context: Src, count: Num, commands: Commands(count)];
    /// Is it a native record?
    IsAnyNativeRecord[fail: Label, src: Src];
    /// Is it a native record of this definition?
    IsNativeRecord[fail: Label, src: Src, module: Const, name: Const];
    /// The values of these fields.
    GetRecordElements[fail: Label, src: Src, count: Num, pairs: KeyDsts(count)];
    /// A native record, new or changed.
    PutRecord[fail: Label, id: Src, src: Src, dst: Dst, live: Live, count: Num, pairs: KeyValues(count)];
    /// May this code see into the record?
    IsRecordAccessible[fail: Label, src: Src, scope: Const];
    /// The value of a field.
    GetRecordField[fail: Label, src: Src, id: Src, field: Const, dst: Dst];
}

impl Op {
    /// The instruction that a code word starts with.
    ///
    /// # Panics
    /// When the word is no instruction's first.
    #[must_use]
    pub(crate) fn of(word: u64) -> Op {
        Op::ALL[(word & 0xffff) as usize]
    }

    /// Its first word with these packed operands.
    #[inline]
    #[must_use]
    pub(crate) const fn word(self, a: u16, b: u16, c: u16) -> u64 {
        self as u64 | ((a as u64) << 16) | ((b as u64) << 32) | ((c as u64) << 48)
    }
}
/// Offset, in words, of a function's parts from its entry.
pub(crate) mod entry {
    /// Where compiled code calls the function.
    pub(crate) const NATIVE: isize = -6;
    /// The function's own code behind its prologue; 0 until it is compiled.
    pub(crate) const BODY: isize = -5;
    /// The breakpoint.
    pub(crate) const BREAKPOINT: isize = -4;
    /// Module.
    pub(crate) const MODULE: isize = -3;
    /// Function.
    pub(crate) const FUNCTION: isize = -2;
    /// Arity, and from bit [`NIF_SHIFT`] on the address of the [`Nif`](crate::code::nif::Nif) that is the body.
    pub(crate) const ARITY: isize = -1;
    /// Where a NIF's address begins in the word of the arity.
    pub(crate) const NIF_SHIFT: u32 = 8;
    /// The arity in the word at [`ARITY`].
    #[inline(always)]
    pub(crate) const fn arity(word: u64) -> u8 {
        word as u8
    }
    /// The NIF in the word at [`ARITY`]; null where there is none.
    #[inline(always)]
    pub(crate) const fn nif(word: u64) -> *const crate::code::nif::Nif {
        (word >> NIF_SHIFT) as *const crate::code::nif::Nif
    }
    /// The word at [`ARITY`] of a function whose body is `nif`.
    pub(crate) fn with_nif(arity: u8, nif: &crate::code::nif::Nif) -> u64 {
        u64::from(arity) | ((std::ptr::from_ref(nif) as u64) << NIF_SHIFT)
    }
    /// In an export's stub: where its code is.
    pub(crate) const TARGET: isize = 2;
    /// Words before the entry.
    pub(crate) const WORDS: usize = crate::term::entry::HEAD_WORDS;
}

/// The register the loader keeps for itself: the last x register.
pub(crate) const SCRATCH: u16 = (crate::process::X_REGISTERS as u16 - 1) * 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn list(out: &mut String, operands: impl Iterator<Item = &'static Operand>, marks: [char; 2]) {
        let text = |operand: &Operand| match operand.count {
            Some(count) => format!("{}: {:?}({count})", operand.name, operand.kind),
            None => format!("{}: {:?}", operand.name, operand.kind),
        };
        let all: Vec<String> = operands.map(text).collect();
        if !all.is_empty() {
            write!(out, "{}{}{}", marks[0], all.join(", "), marks[1]).unwrap();
        }
    }

    /// The reference page of the instructions.
    fn page() -> String {
        let mut out = String::from(
            "# Specific instructions\n\n\
             The table of instructions (`runtime/src/code/op.rs`) makes this page; its test writes it anew with `BLESS=1`.\n\
             Operands in parentheses stand in the instruction's first word, those in brackets take words of their own, and a\n\
             list has the operand that counts it behind its kind. `runtime/src/code/operand.rs` explains the kinds.\n\n\
             | instruction | what it does |\n|---|---|\n",
        );
        for op in Op::ALL {
            let mut row = op.name().to_owned();
            list(
                &mut row,
                op.operands().iter().filter(|o| o.is_packed),
                ['(', ')'],
            );
            list(
                &mut row,
                op.operands().iter().filter(|o| !o.is_packed),
                ['[', ']'],
            );
            writeln!(out, "| `{row}` | {} |", op.doc()).unwrap();
        }
        out
    }

    #[test]
    fn the_reference_page_is_the_table() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/internals/instructions.md"
        );
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(file, page()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            page(),
            "set BLESS=1 to write it anew"
        );
    }

    #[test]
    fn rows_are_such_as_their_readers_take_them() {
        for op in Op::ALL {
            let operands = op.operands();
            let packed = operands.iter().take_while(|o| o.is_packed).count();
            assert!(packed <= 3, "{op:?}: three operands fit the first word");
            assert!(operands[packed..].iter().all(|o| !o.is_packed), "{op:?}");
            for (at, operand) in operands.iter().enumerate() {
                let Some(count) = operand.count else { continue };
                assert_eq!(at + 1, operands.len(), "{op:?}: a list is the last operand");
                assert!(
                    operands[..at].iter().any(|o| o.name == count),
                    "{op:?}: {count}"
                );
            }
            // Methods of every instruction would be hidden by operands of the same name.
            assert!(
                operands
                    .iter()
                    .all(|o| !["words", "next", "at", "second_next"].contains(&o.name)),
                "{op:?}"
            );
        }
    }
}
