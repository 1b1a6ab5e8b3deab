//! The generic instructions, which are the instruction set of `.beam` files.
//!
//! One table, [`for_each_genop`], gives number, name, arity and state of each instruction. The enum [`Op`] and its
//! look-ups are generated from it. Source: `lib/compiler/src/genop.tab` of OTP 29. Numbers are frozen: an instruction
//! that is no longer used keeps its number.

/// Calls `$callback!` with one row for each generic instruction.
///
/// Row: `/// doc` then `NUMBER = Variant "erlang_name" / ARITY STATE;` where STATE is `current` or
/// `obsolete` (no compiler of a supported OTP emits it). Rows are in the order of their numbers,
/// without gaps, from 1.
#[macro_export]
macro_rules! for_each_genop {
    ($callback:ident) => {
        $callback! {
            /// Names this place in the code with a label of the module.
            1 = Label "label" / 1 current;
            /// Heads a function with its module, name and arity; running it raises `function_clause`.
            2 = FuncInfo "func_info" / 3 current;
            /// Ends the code of the module.
            3 = IntCodeEnd "int_code_end" / 0 current;
            /// Calls a local function; the return address goes to the stack.
            4 = Call "call" / 2 current;
            /// Drops the stack frame, then jumps to a local function.
            5 = CallLast "call_last" / 3 current;
            /// Jumps to a local function from one that has no stack frame.
            6 = CallOnly "call_only" / 2 current;
            /// Calls an imported function.
            7 = CallExt "call_ext" / 2 current;
            /// Drops the stack frame, then jumps to an imported function.
            8 = CallExtLast "call_ext_last" / 3 current;
            /// Result of a BIF without arguments.
            9 = Bif0 "bif0" / 2 current;
            /// Result of a guard BIF of one argument that needs no heap.
            10 = Bif1 "bif1" / 4 current;
            /// Result of a guard BIF of two arguments that needs no heap.
            11 = Bif2 "bif2" / 5 current;
            /// Makes a stack frame; its slots are not initialised.
            12 = Allocate "allocate" / 2 current;
            /// Makes a stack frame and ensures free heap.
            13 = AllocateHeap "allocate_heap" / 3 current;
            /// Makes a stack frame of nils.
            14 = AllocateZero "allocate_zero" / 2 obsolete;
            /// Makes a stack frame of nils and ensures free heap.
            15 = AllocateHeapZero "allocate_heap_zero" / 3 obsolete;
            /// Ensures free heap, keeping the live x registers.
            16 = TestHeap "test_heap" / 2 current;
            /// Sets a stack slot to nil.
            17 = Init "init" / 1 obsolete;
            /// Drops the stack frame.
            18 = Deallocate "deallocate" / 1 current;
            /// Returns to the caller.
            19 = Return "return" / 0 current;
            /// Sends `x(1)` to the destination `x(0)`; the result is the message.
            20 = Send "send" / 0 current;
            /// Takes the current message out of the queue and cancels the timeout.
            21 = RemoveMessage "remove_message" / 0 current;
            /// Resets the save pointer after a timeout.
            22 = Timeout "timeout" / 0 current;
            /// Fetches the next message, or jumps when there is none.
            23 = LoopRec "loop_rec" / 2 current;
            /// Moves the save pointer on and repeats the receive loop.
            24 = LoopRecEnd "loop_rec_end" / 1 current;
            /// Waits for a message, resuming at the receive loop.
            25 = Wait "wait" / 1 current;
            /// Waits for a message or until a time has passed.
            26 = WaitTimeout "wait_timeout" / 2 current;
            /// Addition.
            27 = MPlus "m_plus" / 4 obsolete;
            /// Subtraction.
            28 = MMinus "m_minus" / 4 obsolete;
            /// Multiplication.
            29 = MTimes "m_times" / 4 obsolete;
            /// Division to a float.
            30 = MDiv "m_div" / 4 obsolete;
            /// Integer division.
            31 = IntDiv "int_div" / 4 obsolete;
            /// Integer remainder.
            32 = IntRem "int_rem" / 4 obsolete;
            /// Bitwise and.
            33 = IntBand "int_band" / 4 obsolete;
            /// Bitwise or.
            34 = IntBor "int_bor" / 4 obsolete;
            /// Bitwise exclusive or.
            35 = IntBxor "int_bxor" / 4 obsolete;
            /// Shift left.
            36 = IntBsl "int_bsl" / 4 obsolete;
            /// Arithmetic shift right.
            37 = IntBsr "int_bsr" / 4 obsolete;
            /// Bitwise complement.
            38 = IntBnot "int_bnot" / 3 obsolete;
            /// Jumps unless the first is less than the second.
            39 = IsLt "is_lt" / 3 current;
            /// Jumps unless the first is greater than or equal to the second.
            40 = IsGe "is_ge" / 3 current;
            /// Jumps unless the two are `==`.
            41 = IsEq "is_eq" / 3 current;
            /// Jumps unless the two are `/=`.
            42 = IsNe "is_ne" / 3 current;
            /// Jumps unless the two are `=:=`.
            43 = IsEqExact "is_eq_exact" / 3 current;
            /// Jumps unless the two are `=/=`.
            44 = IsNeExact "is_ne_exact" / 3 current;
            /// Jumps unless an integer.
            45 = IsInteger "is_integer" / 2 current;
            /// Jumps unless a float.
            46 = IsFloat "is_float" / 2 current;
            /// Jumps unless a number.
            47 = IsNumber "is_number" / 2 current;
            /// Jumps unless an atom.
            48 = IsAtom "is_atom" / 2 current;
            /// Jumps unless a pid.
            49 = IsPid "is_pid" / 2 current;
            /// Jumps unless a reference.
            50 = IsReference "is_reference" / 2 current;
            /// Jumps unless a port.
            51 = IsPort "is_port" / 2 current;
            /// Jumps unless the empty list.
            52 = IsNil "is_nil" / 2 current;
            /// Jumps unless a binary.
            53 = IsBinary "is_binary" / 2 current;
            /// Jumps unless a constant.
            54 = IsConstant "is_constant" / 2 obsolete;
            /// Jumps unless a list.
            55 = IsList "is_list" / 2 current;
            /// Jumps unless a cons.
            56 = IsNonemptyList "is_nonempty_list" / 2 current;
            /// Jumps unless a tuple.
            57 = IsTuple "is_tuple" / 2 current;
            /// Jumps unless the tuple has this many elements.
            58 = TestArity "test_arity" / 3 current;
            /// Jumps to the label paired with the value.
            59 = SelectVal "select_val" / 3 current;
            /// Jumps to the label paired with the tuple's size.
            60 = SelectTupleArity "select_tuple_arity" / 3 current;
            /// Jumps.
            61 = Jump "jump" / 1 current;
            /// Opens a `catch`, marked in a stack slot.
            62 = Catch "catch" / 2 current;
            /// Closes a `catch` and makes its result.
            63 = CatchEnd "catch_end" / 1 current;
            /// Copies a term to a register.
            64 = Move "move" / 2 current;
            /// Takes head and tail of a cons.
            65 = GetList "get_list" / 3 current;
            /// Takes one element of a tuple.
            66 = GetTupleElement "get_tuple_element" / 3 current;
            /// Overwrites one element of a tuple just made.
            67 = SetTupleElement "set_tuple_element" / 3 current;
            /// Builds a list of characters.
            68 = PutString "put_string" / 3 obsolete;
            /// Builds a cons.
            69 = PutList "put_list" / 3 current;
            /// Begins a tuple.
            70 = PutTuple "put_tuple" / 2 obsolete;
            /// Adds the next element of a tuple begun.
            71 = Put "put" / 1 obsolete;
            /// Raises `{badmatch, V}`.
            72 = Badmatch "badmatch" / 1 current;
            /// Raises `if_clause`.
            73 = IfEnd "if_end" / 0 current;
            /// Raises `{case_clause, V}`.
            74 = CaseEnd "case_end" / 1 current;
            /// Calls the fun that lies after its arguments.
            75 = CallFun "call_fun" / 1 current;
            /// Builds a fun.
            76 = MakeFun "make_fun" / 3 obsolete;
            /// Jumps unless a fun.
            77 = IsFunction "is_function" / 2 current;
            /// Jumps to an imported function from one that has no stack frame.
            78 = CallExtOnly "call_ext_only" / 2 current;
            /// Begins binary matching.
            79 = BsStartMatch "bs_start_match" / 2 obsolete;
            /// Matches an integer segment.
            80 = BsGetInteger "bs_get_integer" / 5 obsolete;
            /// Matches a float segment.
            81 = BsGetFloat "bs_get_float" / 5 obsolete;
            /// Matches a binary segment.
            82 = BsGetBinary "bs_get_binary" / 5 obsolete;
            /// Skips bits.
            83 = BsSkipBits "bs_skip_bits" / 4 obsolete;
            /// Tests how many bits are left.
            84 = BsTestTail "bs_test_tail" / 2 obsolete;
            /// Saves a position.
            85 = BsSave "bs_save" / 1 obsolete;
            /// Restores a position.
            86 = BsRestore "bs_restore" / 1 obsolete;
            /// Begins a binary.
            87 = BsInit "bs_init" / 2 obsolete;
            /// Ends a binary.
            88 = BsFinal "bs_final" / 2 obsolete;
            /// Appends an integer segment.
            89 = BsPutInteger "bs_put_integer" / 5 obsolete;
            /// Appends a binary segment.
            90 = BsPutBinary "bs_put_binary" / 5 obsolete;
            /// Appends a float segment.
            91 = BsPutFloat "bs_put_float" / 5 obsolete;
            /// Appends bytes of the string table.
            92 = BsPutString "bs_put_string" / 2 obsolete;
            /// Ensures room in the binary buffer.
            93 = BsNeedBuf "bs_need_buf" / 1 obsolete;
            /// Clears the float error flag.
            94 = Fclearerror "fclearerror" / 0 obsolete;
            /// Checks the float error flag.
            95 = Fcheckerror "fcheckerror" / 1 obsolete;
            /// Moves a float between a float register and a term.
            96 = Fmove "fmove" / 2 current;
            /// Converts a number to a float register.
            97 = Fconv "fconv" / 2 current;
            /// Adds float registers.
            98 = Fadd "fadd" / 4 current;
            /// Subtracts float registers.
            99 = Fsub "fsub" / 4 current;
            /// Multiplies float registers.
            100 = Fmul "fmul" / 4 current;
            /// Divides float registers.
            101 = Fdiv "fdiv" / 4 current;
            /// Negates a float register.
            102 = Fnegate "fnegate" / 3 current;
            /// Builds a fun from a row of the lambda table.
            103 = MakeFun2 "make_fun2" / 1 obsolete;
            /// Opens a `try`, marked in a stack slot.
            104 = Try "try" / 2 current;
            /// Closes a `try` that raised nothing.
            105 = TryEnd "try_end" / 1 current;
            /// Enters a `try`'s handlers with class, reason and stack trace in x registers.
            106 = TryCase "try_case" / 1 current;
            /// Raises `{try_clause, V}`.
            107 = TryCaseEnd "try_case_end" / 1 current;
            /// Raises again with a stack trace.
            108 = Raise "raise" / 2 current;
            /// Begins a binary of a size in bytes.
            109 = BsInit2 "bs_init2" / 6 obsolete;
            /// Converts a size in bits.
            110 = BsBitsToBytes "bs_bits_to_bytes" / 3 obsolete;
            /// Adds up sizes of segments.
            111 = BsAdd "bs_add" / 5 obsolete;
            /// Calls a function named by the two x registers after its arguments.
            112 = Apply "apply" / 1 current;
            /// Drops the stack frame, then applies.
            113 = ApplyLast "apply_last" / 2 current;
            /// Jumps unless `true` or `false`.
            114 = IsBoolean "is_boolean" / 2 current;
            /// Jumps unless a fun of this arity.
            115 = IsFunction2 "is_function2" / 3 current;
            /// Begins binary matching with slots for saved positions.
            116 = BsStartMatch2 "bs_start_match2" / 5 obsolete;
            /// Matches an integer segment.
            117 = BsGetInteger2 "bs_get_integer2" / 7 current;
            /// Matches a float segment.
            118 = BsGetFloat2 "bs_get_float2" / 7 current;
            /// Matches a binary segment.
            119 = BsGetBinary2 "bs_get_binary2" / 7 current;
            /// Skips a number of bits.
            120 = BsSkipBits2 "bs_skip_bits2" / 5 current;
            /// Jumps unless exactly this many bits are left.
            121 = BsTestTail2 "bs_test_tail2" / 3 current;
            /// Saves a position in a slot.
            122 = BsSave2 "bs_save2" / 2 obsolete;
            /// Restores a position from a slot.
            123 = BsRestore2 "bs_restore2" / 2 obsolete;
            /// Result of a guard BIF of one argument that may collect.
            124 = GcBif1 "gc_bif1" / 5 current;
            /// Result of a guard BIF of two arguments that may collect.
            125 = GcBif2 "gc_bif2" / 6 current;
            /// Ends a binary.
            126 = BsFinal2 "bs_final2" / 2 obsolete;
            /// Converts a size in bits.
            127 = BsBitsToBytes2 "bs_bits_to_bytes2" / 2 obsolete;
            /// Loads a literal.
            128 = PutLiteral "put_literal" / 2 obsolete;
            /// Jumps unless a bitstring.
            129 = IsBitstr "is_bitstr" / 2 current;
            /// Turns a match context back into a bitstring.
            130 = BsContextToBinary "bs_context_to_binary" / 1 obsolete;
            /// Jumps unless the bits left are a multiple of a unit.
            131 = BsTestUnit "bs_test_unit" / 3 obsolete;
            /// Jumps unless the next bits equal bytes of the string table.
            132 = BsMatchString "bs_match_string" / 4 current;
            /// Makes the writable binary that a comprehension appends to.
            133 = BsInitWritable "bs_init_writable" / 0 current;
            /// Begins a binary by appending to one.
            134 = BsAppend "bs_append" / 8 obsolete;
            /// Appends to a binary that nobody else sees.
            135 = BsPrivateAppend "bs_private_append" / 6 obsolete;
            /// Drops the topmost slots of the stack frame.
            136 = Trim "trim" / 2 current;
            /// Begins a bitstring of a size in bits.
            137 = BsInitBits "bs_init_bits" / 6 obsolete;
            /// Matches a UTF-8 character.
            138 = BsGetUtf8 "bs_get_utf8" / 5 current;
            /// Skips a UTF-8 character.
            139 = BsSkipUtf8 "bs_skip_utf8" / 4 current;
            /// Matches a UTF-16 character.
            140 = BsGetUtf16 "bs_get_utf16" / 5 current;
            /// Skips a UTF-16 character.
            141 = BsSkipUtf16 "bs_skip_utf16" / 4 current;
            /// Matches a UTF-32 character.
            142 = BsGetUtf32 "bs_get_utf32" / 5 current;
            /// Skips a UTF-32 character.
            143 = BsSkipUtf32 "bs_skip_utf32" / 4 current;
            /// Size of a character in UTF-8.
            144 = BsUtf8Size "bs_utf8_size" / 3 obsolete;
            /// Appends a UTF-8 character.
            145 = BsPutUtf8 "bs_put_utf8" / 3 obsolete;
            /// Size of a character in UTF-16.
            146 = BsUtf16Size "bs_utf16_size" / 3 obsolete;
            /// Appends a UTF-16 character.
            147 = BsPutUtf16 "bs_put_utf16" / 3 obsolete;
            /// Appends a UTF-32 character.
            148 = BsPutUtf32 "bs_put_utf32" / 3 obsolete;
            /// Marks the function to run when the module is loaded.
            149 = OnLoad "on_load" / 0 current;
            /// Marks a place in the message queue.
            150 = RecvMark "recv_mark" / 1 obsolete;
            /// Starts a receive from the marked place.
            151 = RecvSet "recv_set" / 1 obsolete;
            /// Result of a guard BIF of three arguments that may collect.
            152 = GcBif3 "gc_bif3" / 7 current;
            /// The source line of the next call, as a row of the line table.
            153 = Line "line" / 1 current;
            /// Copies a map with keys added or replaced.
            154 = PutMapAssoc "put_map_assoc" / 5 current;
            /// Copies a map with existing keys replaced.
            155 = PutMapExact "put_map_exact" / 5 current;
            /// Jumps unless a map.
            156 = IsMap "is_map" / 2 current;
            /// Jumps unless the map has all these keys.
            157 = HasMapFields "has_map_fields" / 3 current;
            /// Takes the values of keys, or jumps when one is missing.
            158 = GetMapElements "get_map_elements" / 3 current;
            /// Jumps unless a tuple of this size and first element.
            159 = IsTaggedTuple "is_tagged_tuple" / 4 current;
            /// Turns the raw stack trace in `x(0)` into a term.
            160 = BuildStacktrace "build_stacktrace" / 0 current;
            /// Raises class, reason and raw stack trace from `x(0)` to `x(2)`.
            161 = RawRaise "raw_raise" / 0 current;
            /// Takes the head of a cons.
            162 = GetHd "get_hd" / 2 current;
            /// Takes the tail of a cons.
            163 = GetTl "get_tl" / 2 current;
            /// Builds a tuple of the listed elements.
            164 = PutTuple2 "put_tuple2" / 2 current;
            /// The rest of a match context as a bitstring.
            165 = BsGetTail "bs_get_tail" / 3 current;
            /// Begins binary matching.
            166 = BsStartMatch3 "bs_start_match3" / 4 current;
            /// Reads the position of a match context.
            167 = BsGetPosition "bs_get_position" / 3 current;
            /// Sets the position of a match context.
            168 = BsSetPosition "bs_set_position" / 2 current;
            /// Swaps two registers.
            169 = Swap "swap" / 2 current;
            /// Begins binary matching where failure may be ruled out.
            170 = BsStartMatch4 "bs_start_match4" / 4 current;
            /// Builds a fun from a row of the lambda table and its environment.
            171 = MakeFun3 "make_fun3" / 3 current;
            /// Sets the listed stack slots to nil.
            172 = InitYregs "init_yregs" / 1 current;
            /// Binds a receive marker to a reference.
            173 = RecvMarkerBind "recv_marker_bind" / 2 current;
            /// Drops the receive marker of a reference.
            174 = RecvMarkerClear "recv_marker_clear" / 1 current;
            /// Puts a receive marker at the end of the queue.
            175 = RecvMarkerReserve "recv_marker_reserve" / 1 current;
            /// Starts a receive at the marker of a reference.
            176 = RecvMarkerUse "recv_marker_use" / 1 current;
            /// Builds a bitstring of the listed segments.
            177 = BsCreateBin "bs_create_bin" / 6 current;
            /// Calls a fun about which the compiler knows something.
            178 = CallFun2 "call_fun2" / 3 current;
            /// Heads a function that a NIF may replace.
            179 = NifStart "nif_start" / 0 current;
            /// Raises `{badrecord, V}`.
            180 = Badrecord "badrecord" / 1 current;
            /// Copies a tuple with the listed elements replaced.
            181 = UpdateRecord "update_record" / 5 current;
            /// Runs the listed match commands of fixed size.
            182 = BsMatch "bs_match" / 3 current;
            /// The source line of executable code, with a counter's index.
            183 = ExecutableLine "executable_line" / 2 current;
            /// A place where a debugger may stop.
            184 = DebugLine "debug_line" / 4 current;
            /// Result of a guard BIF of three arguments that needs no heap.
            185 = Bif3 "bif3" / 6 current;
            /// Jumps unless a native record.
            186 = IsAnyNativeRecord "is_any_native_record" / 2 current;
            /// Jumps unless a native record of this module and name.
            187 = IsNativeRecord "is_native_record" / 4 current;
            /// Takes the values of fields of a native record, or jumps.
            188 = GetRecordElements "get_record_elements" / 3 current;
            /// Builds a native record or a copy with fields replaced.
            189 = PutRecord "put_record" / 6 current;
            /// Jumps unless this module may read the native record's fields.
            190 = IsRecordAccessible "is_record_accessible" / 3 current;
            /// Takes one field of a native record.
            191 = GetRecordField "get_record_field" / 5 current;
        }
    };
}

macro_rules! define_ops {
    ($($(#[$doc:meta])* $number:literal = $variant:ident $name:literal / $arity:literal $state:ident;)*) => {
        /// A generic instruction; its value is its number in the `Code` chunk.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Op {
            /// Every generic instruction, in the order of numbers; number `n` is at `n - 1`.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            const NAMES: &'static [&'static str] = &[$($name,)*];
            const ARITIES: &'static [u8] = &[$($arity,)*];
            #[cfg(test)]
            const OBSOLETE: &'static [bool] = &[$(is_obsolete!($state),)*];
        }
    };
}

#[cfg(test)]
macro_rules! is_obsolete {
    (current) => {
        false
    };
    (obsolete) => {
        true
    };
}

for_each_genop!(define_ops);

impl Op {
    /// The highest number in use.
    pub const MAX: u8 = Self::ALL.len() as u8;

    /// The instruction of a number; `None` for 0 and for numbers over [`Op::MAX`].
    #[inline]
    #[must_use]
    pub fn from_number(number: u8) -> Option<Op> {
        Self::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// The number in the `Code` chunk.
    #[inline]
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The name as OTP writes it, such as `get_tuple_element`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[usize::from(self.number() - 1)]
    }

    /// The number of operands; a list counts as one.
    #[inline]
    #[must_use]
    pub fn arity(self) -> usize {
        usize::from(Self::ARITIES[usize::from(self.number() - 1)])
    }

    /// True for an instruction that no supported compiler emits.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn is_obsolete(self) -> bool {
        Self::OBSOLETE[usize::from(self.number() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::Op;

    #[test]
    fn numbers_have_no_gaps() {
        for (i, op) in Op::ALL.iter().enumerate() {
            assert_eq!(usize::from(op.number()), i + 1, "{}", op.name());
            assert_eq!(Op::from_number(op.number()), Some(*op));
        }
        assert_eq!(Op::from_number(0), None);
        assert_eq!(Op::from_number(Op::MAX + 1), None);
        assert_eq!(Op::MAX, 191);
    }

    #[test]
    fn known_rows() {
        let check = |number, name: &str, arity, obsolete| {
            let op = Op::from_number(number).expect("a number of the table");
            assert_eq!(
                (op.name(), op.arity(), op.is_obsolete()),
                (name, arity, obsolete)
            );
        };
        check(1, "label", 1, false);
        check(14, "allocate_zero", 2, true);
        check(125, "gc_bif2", 6, false);
        check(177, "bs_create_bin", 6, false);
        check(191, "get_record_field", 5, false);
    }
}
