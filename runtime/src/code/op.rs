//! The specific instruction set: what the interpreter runs.
//!
//! An instruction is a word (`op` in the low 16 bits, then three packed 16-bit operands `a b c`) and the
//! words that the row names behind it. Operands:
//!
//! - `r`: a register, packed: its byte offset, plus 4 for a y register.
//! - `S`: a word that is a register (coded as above, primary tag 00) or else a term.
//! - `L`: the address of an instruction; 0 for none.
//! - `n`: a plain number.
//!
//! A *slow* row has all operands of its generic instruction as words, after their count in `a` and `b`,
//! 32 bits together. Rows named `...Wide` take as words what is too large for a packed operand in the row
//! of that name: arities and indices of tuples with more than 65,535 elements.

macro_rules! specific_ops {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        /// A specific instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Op { $($(#[doc = $doc])* $name,)* }

        impl Op {
            /// All of them, in order.
            pub const ALL: &[Op] = &[$(Op::$name,)*];
            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Op::$name => stringify!($name),)* }
            }
        }
    };
}

specific_ops! {
    /// Head of a function: raises `function_clause`. Words: breakpoint, module, function, arity.
    FuncInfo;
    /// An entry under a breakpoint; the breakpoint knows the word that stood here.
    Breakpoint;
    /// Entry of an export without code: calls the process's error handler.
    ErrorHandler;
    /// Entry of a function that is a BIF. Words: BIF.
    BifEntry;
    /// Entry of `erlang:apply/3`.
    ApplyEntry;
    /// Entry of `erlang:apply/2`.
    ApplyFunEntry;
    /// A process's first instruction: `apply(x0, x1, x2)`.
    SpawnEntry;
    /// A process's last one.
    NormalExit;
    /// Where a call that was traced returns to.
    TraceReturn;
    /// A line where a debugger can stop processes; `a` live registers.
    LineBreakpointOff;
    /// A line where processes stop for a debugger; `a` live registers.
    LineBreakpoint;
    /// Where the call that stops a process at a line returns to.
    LineBreakpointEnd;

    /// `L`
    Jump;
    /// From an export's stub to its code.
    JumpTarget;
    /// Local call. `L`
    Call;
    /// Local tail call, `a` words of frame dropped. `L`
    CallLast;
    /// Local tail call. `L`
    CallOnly;
    /// Call of an export. Word: export.
    CallExt;
    /// Tail call of an export, `a` words of frame dropped.
    CallExtLast;
    /// Tail call of an export.
    CallExtOnly;
    /// Call of a BIF of arity `a`. Words: BIF, export.
    CallBif;
    /// Call of a heavy BIF of arity `a`, which costs no reduction by itself. Words: BIF, export.
    CallHbif;
    /// `apply(x0, x1, x2)` by name, with the arguments as a list.
    CallApply;
    /// The same as a tail call, `a` words of frame dropped.
    CallApplyLast;
    /// `apply(x0, x1)`: a fun and its arguments as a list.
    CallApplyFun;
    /// The same as a tail call, `a` words of frame dropped.
    CallApplyFunLast;
    /// `erlang:yield/0`.
    Yield;
    /// `erlang:hibernate/0`.
    Hibernate;
    /// `M:F` with `a` arguments, module in `x(a)`, function in `x(a+1)`.
    Apply;
    /// The same as a tail call, `b` words of frame dropped.
    ApplyLast;
    /// Calls the fun in register `b` with `a` arguments.
    CallFun;
    /// The same as a tail call, `c` words of frame dropped.
    CallFunLast;
    /// Returns.
    Return;
    /// Drops `a` words of frame.
    Deallocate;
    /// Drops `a` words of frame and returns.
    DeallocateReturn;
    /// A frame of `a` words, `b` live registers.
    Allocate;
    /// A frame of `a` words and heap. Word: need.
    AllocateHeap;
    /// Heap, `b` live registers. Word: need.
    TestHeap;
    /// Drops the first `a` words of the frame.
    Trim;
    /// `r` is set to nil.
    InitY;

    /// `r r`
    MoveRR;
    /// Two moves. `r r`; word: `r r` packed in the lowest halves.
    Move2RR;
    /// `_ r`; word: term.
    MoveCR;
    /// `r r`
    SwapRR;
    /// `r r r`: cell, head, tail.
    GetList;
    /// `r r`
    GetHd;
    /// `r r`
    GetTl;
    /// `r r n`: tuple, destination, index from 0.
    GetTupleElement;
    /// `r r`; word: index.
    GetTupleElementWide;
    /// Two elements side by side. `r r n`; word: second destination.
    GetTupleElement2;
    /// `r r r`: head, tail, destination.
    PutListRR;
    /// `_ r r`: tail, destination; word: head.
    PutListCR;
    /// `r _ r`: head, destination; word: tail.
    PutListRC;
    /// `r n`: destination, arity; words: `S` each.
    PutTuple;
    /// `r`: destination; words: arity, `S` each.
    PutTupleWide;
    /// `r n r`: tuple, index, value: changes a tuple just made.
    SetTupleElement;
    /// `r _ r`; word: index.
    SetTupleElementWide;

    /// `r`; words: `L`.
    IsInteger;
    /// `r`; `L`
    IsFloat;
    /// `r`; `L`
    IsNumber;
    /// `r`; `L`
    IsAtom;
    /// `r`; `L`
    IsBoolean;
    /// `r`; `L`
    IsPid;
    /// `r`; `L`
    IsPort;
    /// `r`; `L`
    IsReference;
    /// `r`; `L`
    IsNil;
    /// `r`; `L`
    IsList;
    /// `r`; `L`
    IsNonemptyList;
    /// `r`; `L`
    IsTuple;
    /// `r n`; `L`. The register is known to hold a tuple.
    TestArity;
    /// `r n`; `L`. A tuple of that arity.
    IsTupleOfArity;
    /// `r`; `L`, arity.
    IsTupleOfArityWide;
    /// `r n`; `L`, tag.
    IsTaggedTuple;
    /// `r`; `L`, tag, arity.
    IsTaggedTupleWide;
    /// `r`; `L`
    IsBinary;
    /// `r`; `L`
    IsBitstr;
    /// `r`; `L`
    IsMap;
    /// `r`; `L`
    IsFunction;
    /// `L S S`
    IsFunction2;
    /// Is a non-empty list, and its parts. `r r r`; `L`.
    IsNonemptyListGetList;

    /// `r r`; `L`
    IsEqExactRR;
    /// `r`; `L`, immediate.
    IsEqExactRC;
    /// `L S S`
    IsEqExactSS;
    /// `r`; `L`, immediate.
    IsNeExactRC;
    /// `L S S`
    IsNeExactSS;
    /// `L S S`
    IsEqSS;
    /// `L S S`
    IsNeSS;
    /// `r r`; `L`
    IsLtRR;
    /// `r`; `L`, small integer.
    IsLtRC;
    /// `r`; `L`, small integer on the left.
    IsLtCR;
    /// `L S S`
    IsLtSS;
    /// `r r`; `L`
    IsGeRR;
    /// `r`; `L`, small integer.
    IsGeRC;
    /// `r`; `L`, small integer on the left.
    IsGeCR;
    /// `L S S`
    IsGeSS;
    /// `r`; `L` otherwise, count, values in order, then labels.
    SelectVal;
    /// `r`; `L` otherwise, least value, count, labels.
    JumpTable;
    /// `r`; `L` otherwise, count, pairs of term and label.
    SelectTerm;
    /// `r`; `L` otherwise, count, pairs of arity and label.
    SelectTupleArity;

    /// `r r r`; `L`, live.
    AddRR;
    /// `r _ r`; `L`, live, small integer.
    AddRC;
    /// `r r r`; `L`, live.
    SubRR;
    /// `r _ r`; `L`, live, small integer.
    SubRC;
    /// `_ _ r`; `L`, live, `S S`. The same for all down to [`Op::Bsr`].
    Add;
    /// See [`Op::Add`].
    Sub;
    /// See [`Op::Add`].
    Mul;
    /// `S1 * S2 + S3` without a term for the product, as OTP's JIT does it. Words: `L`, live, `S`, `S`, `S`.
    MulAdd;
    /// See [`Op::Add`].
    IntDiv;
    /// See [`Op::Add`].
    Rem;
    /// See [`Op::Add`].
    Band;
    /// See [`Op::Add`].
    Bor;
    /// See [`Op::Add`].
    Bxor;
    /// See [`Op::Add`].
    Bsl;
    /// See [`Op::Add`].
    Bsr;
    /// Guard BIF without arguments. `_ _ r`; words: `L`, BIF.
    Bif0;
    /// Guard BIF. `live _ r`; words: `L`, BIF, `S`.
    Bif1;
    /// Guard BIF. `live _ r`; words: `L`, BIF, `S S`.
    Bif2;
    /// Guard BIF. `live _ r`; words: `L`, BIF, `S S S`.
    Bif3;
    /// `self()`. `r`
    SelfR;
    /// `element(n, r)`. `r n r`; `L`, BIF.
    ElementRC;
    /// `hd(r)`. `r _ r`; `L`, BIF.
    HdR;
    /// `tl(r)`. `r _ r`; `L`, BIF.
    TlR;

    /// `r n`: boxed float to float register.
    FmoveFrom;
    /// `n r`: float register to a new float.
    FmoveTo;
    /// `_ n`; word: `S`.
    Fconv;
    /// `n n n`
    Fadd;
    /// `n n n`
    Fsub;
    /// `n n n`
    Fmul;
    /// `n n n`
    Fdiv;
    /// `n _ n`
    Fnegate;

    /// `r`; `L`. Also `try`.
    Catch;
    /// `r`
    CatchEnd;
    /// `r`
    TryEnd;
    /// `r`
    TryCase;
    /// `S`
    TryCaseEnd;
    /// `S`
    Badmatch;
    /// `S`
    CaseEnd;
    /// `S`
    Badrecord;
    /// No operands.
    IfEnd;
    /// `S S`: trace and value.
    Raise;
    /// Class, value and trace in `x(0)` to `x(2)`.
    RawRaise;
    /// A saved trace in `x(0)` becomes a list.
    BuildStacktrace;

    /// `r`; fun entry, count, `S` each.
    MakeFun;
    /// Receiver and message in `x(0)` and `x(1)`.
    Send;
    /// `L`
    LoopRec;
    /// `L`
    LoopRecEnd;
    /// `L`
    Wait;
    /// `L`, `S`
    WaitTimeout;
    /// No operands.
    Timeout;
    /// No operands.
    RemoveMessage;
    /// `r`
    RecvMarkerReserve;
    /// `S S`
    RecvMarkerBind;
    /// `S`
    RecvMarkerClear;
    /// `S`
    RecvMarkerUse;

    /// Slow.
    UpdateRecord;
    /// Slow.
    PutMapAssoc;
    /// Slow.
    PutMapExact;
    /// Slow.
    HasMapFields;
    /// Slow.
    GetMapElements;
    /// Slow.
    BsGetInteger;
    /// Slow.
    BsGetFloat;
    /// Slow.
    BsGetBinary;
    /// Slow.
    BsSkipBits;
    /// Slow.
    BsTestTail;
    /// Slow.
    BsTestUnit;
    /// Slow.
    BsMatchString;
    /// Slow.
    BsInitWritable;
    /// Slow.
    BsGetUtf8;
    /// Slow.
    BsSkipUtf8;
    /// Slow.
    BsGetUtf16;
    /// Slow.
    BsSkipUtf16;
    /// Slow.
    BsGetUtf32;
    /// Slow.
    BsSkipUtf32;
    /// Slow.
    BsGetTail;
    /// Slow.
    BsStartMatch;
    /// Slow.
    BsGetPosition;
    /// Slow.
    BsSetPosition;
    /// Slow.
    BsCreateBin;
    /// Slow.
    BsMatch;
    /// Slow.
    IsAnyNativeRecord;
    /// Slow.
    IsNativeRecord;
    /// Slow.
    GetRecordElements;
    /// Slow.
    PutRecord;
    /// Slow.
    IsRecordAccessible;
    /// Slow.
    GetRecordField;
}

impl Op {
    /// The instruction that a code word starts with.
    ///
    /// # Panics
    /// When the word is no instruction's first.
    #[must_use]
    pub fn of(word: u64) -> Op {
        Op::ALL[(word & 0xffff) as usize]
    }

    /// Its first word with these packed operands.
    #[inline]
    #[must_use]
    pub const fn word(self, a: u16, b: u16, c: u16) -> u64 {
        self as u64 | ((a as u64) << 16) | ((b as u64) << 32) | ((c as u64) << 48)
    }

    /// How many words of operands a slow row has whose first word this is.
    #[inline]
    #[must_use]
    pub const fn slow_words(word: u64) -> usize {
        (word >> 16) as u32 as usize
    }
}

/// Offset, in words, of a function's parts from its entry.
pub mod entry {
    /// The `FuncInfo` word.
    pub const FUNC_INFO: isize = -5;
    /// The breakpoint.
    pub const BREAKPOINT: isize = -4;
    /// Module.
    pub const MODULE: isize = -3;
    /// Function.
    pub const FUNCTION: isize = -2;
    /// Arity.
    pub const ARITY: isize = -1;
    /// In an export's stub: where its code is.
    pub const TARGET: isize = 2;
    /// Words before the entry.
    pub const WORDS: usize = crate::term::entry::HEAD_WORDS;
}

/// Code of a y register in an operand.
pub const Y_BIT: u64 = 4;
/// The register the loader keeps for itself: the last x register.
pub const SCRATCH: u16 = (crate::process::X_REGISTERS as u16 - 1) * 8;
