//! The table of arms: which function runs each instruction.
//!
//! A row is the kind of its arm, the instruction and the function. Kinds: `arm` works on the loop's registers, `saves`
//! has an instance for processes that save their calls, `slow` works on a process swapped out.

/// Hands all rows to the macro `$with`, behind what stands in its brackets.
macro_rules! all_arms {
    ($with:ident!($($before:tt)*)) => {
        $with! {
            ($($before)*)
            arm FuncInfo entries::func_info;
            saves ErrorHandler entries::error_handler;
            arm BifEntry bifs::bif_entry;
            arm NifEntry bifs::nif_entry;
            saves ApplyEntry entries::apply_entry;
            saves ApplyFunEntry entries::apply_fun_entry;
            saves SpawnEntry entries::spawn_entry;
            arm NormalExit entries::normal_exit;
            arm TraceReturn entries::trace_return;
            arm LineBreakpointOff entries::line_breakpoint_off;
            arm LineBreakpoint entries::line_breakpoint;
            arm LineBreakpointEnd entries::line_breakpoint_end;

            arm Jump frames::jump;
            arm JumpTarget entries::jump_target;
            arm Call calls::call;
            arm CallLast calls::call_last;
            arm CallOnly calls::call_only;
            saves CallExt calls::call_ext;
            saves CallExtLast calls::call_ext_last;
            saves CallExtOnly calls::call_ext_only;
            saves CallBif bifs::call_bif_light;
            saves CallHbif bifs::call_bif_heavy;
            saves CallApply calls::call_apply;
            saves CallApplyLast calls::call_apply_last;
            saves CallApplyFun calls::call_apply_fun;
            saves CallApplyFunLast calls::call_apply_fun_last;
            arm Yield entries::yield_;
            arm Hibernate entries::hibernate;
            saves Apply calls::apply;
            saves ApplyLast calls::apply_last;
            saves CallFun calls::call_fun;
            saves CallFunLast calls::call_fun_last;
            arm Return frames::return_;
            arm Deallocate frames::deallocate;
            arm DeallocateReturn frames::deallocate_return;
            arm Allocate frames::allocate;
            arm AllocateHeap frames::allocate_heap;
            arm TestHeap frames::test_heap;
            arm Trim frames::trim;
            arm InitY data::init_y;

            arm MoveRR data::move_rr;
            arm Move2RR data::move2_rr;
            arm MoveCR data::move_cr;
            arm SwapRR data::swap_rr;
            arm GetList data::get_list;
            arm GetHd data::get_hd;
            arm GetTl data::get_tl;
            arm GetTupleElement data::get_tuple_element;
            arm GetTupleElementWide data::get_tuple_element_wide;
            arm GetTupleElement2 data::get_tuple_element2;
            arm PutListRR data::put_list_rr;
            arm PutListCR data::put_list_cr;
            arm PutListRC data::put_list_rc;
            arm PutTuple data::put_tuple;
            arm PutTupleWide data::put_tuple_wide;
            arm SetTupleElement data::set_tuple_element;
            arm SetTupleElementWide data::set_tuple_element_wide;

            arm IsInteger types::is_integer;
            arm IsFloat types::is_float;
            arm IsNumber types::is_number;
            arm IsAtom types::is_atom;
            arm IsBoolean types::is_boolean;
            arm IsPid types::is_pid;
            arm IsPort types::is_port;
            arm IsReference types::is_reference;
            arm IsNil types::is_nil;
            arm IsList types::is_list;
            arm IsNonemptyList types::is_nonempty_list;
            arm IsTuple types::is_tuple;
            arm TestArity types::test_arity;
            arm IsTupleOfArity types::is_tuple_of_arity;
            arm IsTupleOfArityWide types::is_tuple_of_arity_wide;
            arm IsTaggedTuple types::is_tagged_tuple;
            arm IsTaggedTupleWide types::is_tagged_tuple_wide;
            arm IsBinary types::is_binary;
            arm IsBitstr types::is_bitstr;
            arm IsMap types::is_map;
            arm IsFunction types::is_function;
            arm IsFunction2 types::is_function2;
            arm IsNonemptyListGetList data::is_nonempty_list_get_list;

            arm IsEqExactRR order::is_eq_exact_rr;
            arm IsEqExactRC order::is_eq_exact_rc;
            arm IsEqExactSS order::is_eq_exact_ss;
            arm IsNeExactRC order::is_ne_exact_rc;
            arm IsNeExactSS order::is_ne_exact_ss;
            arm IsEqSS order::is_eq_ss;
            arm IsNeSS order::is_ne_ss;
            arm IsLtRR order::is_lt_rr;
            arm IsLtRC order::is_lt_rc;
            arm IsLtCR order::is_lt_cr;
            arm IsLtSS order::is_lt_ss;
            arm IsGeRR order::is_ge_rr;
            arm IsGeRC order::is_ge_rc;
            arm IsGeCR order::is_ge_cr;
            arm IsGeSS order::is_ge_ss;
            arm SelectVal select::select_val;
            arm JumpTable select::jump_table;
            arm SelectTerm select::select_term;
            arm SelectTupleArity select::select_tuple_arity;

            arm AddRR arith::add_rr;
            arm AddRC arith::add_rc;
            arm SubRR arith::sub_rr;
            arm SubRC arith::sub_rc;
            arm Bif2 bifs::bif2;
            arm Mul arith::mul;
            arm MulAdd arith::mul_add;
            arm IntDiv arith::int_div;
            arm Rem arith::rem;
            arm Band arith::band;
            arm Bor arith::bor;
            arm Bxor arith::bxor;
            arm Bsl arith::bsl;
            arm Bsr arith::bsr;
            arm Bif0 bifs::bif0;
            arm Bif1 bifs::bif1;
            arm Bif3 bifs::bif3;
            arm SelfR bifs::self_r;
            arm ElementRC bifs::element_rc;
            arm HdR bifs::hd_r;
            arm TlR bifs::tl_r;

            arm FmoveFrom floats::fmove_from;
            arm FmoveTo floats::fmove_to;
            arm Fconv floats::fconv;
            arm Fadd floats::fadd;
            arm Fsub floats::fsub;
            arm Fmul floats::fmul;
            arm Fdiv floats::fdiv;
            arm Fnegate floats::fnegate;

            arm Catch handlers::catch;
            arm CatchEnd handlers::catch_end;
            arm TryEnd handlers::try_end;
            arm TryCase handlers::try_case;
            arm TryCaseEnd handlers::try_case_end;
            arm Badmatch handlers::badmatch;
            arm CaseEnd handlers::case_end;
            arm Badrecord handlers::badrecord;
            arm IfEnd handlers::if_end;
            arm Raise handlers::raise;
            arm RawRaise handlers::raw_raise;
            arm BuildStacktrace handlers::build_stacktrace;

            arm MakeFun data::make_fun;
            saves Send bifs::send;
            arm LoopRec receive::loop_rec;
            arm LoopRecEnd receive::loop_rec_end;
            arm Wait receive::wait;
            arm WaitTimeout receive::wait_timeout;
            saves Timeout receive::timeout;
            saves RemoveMessage receive::remove_message;
            arm RecvMarkerReserve receive::recv_marker_reserve;
            arm RecvMarkerBind receive::recv_marker_bind;
            arm RecvMarkerClear receive::recv_marker_clear;
            arm RecvMarkerUse receive::recv_marker_use;

            slow UpdateRecord records::update_record;
            slow PutMapAssoc maps::put_map_assoc;
            slow PutMapExact maps::put_map_exact;
            slow HasMapFields maps::has_map_fields;
            slow GetMapElements maps::get_map_elements;
            slow BsGetInteger bits::get::bs_get_integer2;
            slow BsGetFloat bits::get::bs_get_float2;
            slow BsGetBinary bits::get::bs_get_binary2;
            slow BsSkipBits bits::get::bs_skip_bits2;
            slow BsTestTail bits::start::bs_test_tail2;
            slow BsTestUnit bits::start::bs_test_unit;
            slow BsMatchString bits::start::bs_match_string;
            slow BsInitWritable bits::create::bs_init_writable;
            slow BsGetUtf8 bits::get::bs_get_utf8;
            slow BsSkipUtf8 bits::get::bs_skip_utf8;
            slow BsGetUtf16 bits::get::bs_get_utf16;
            slow BsSkipUtf16 bits::get::bs_skip_utf16;
            slow BsGetUtf32 bits::get::bs_get_utf32;
            slow BsSkipUtf32 bits::get::bs_skip_utf32;
            slow BsGetTail bits::start::bs_get_tail;
            slow BsStartMatch bits::start::bs_start_match;
            slow BsGetPosition bits::start::bs_get_position;
            slow BsSetPosition bits::start::bs_set_position;
            slow BsCreateBin bits::create::bs_create_bin;
            slow BsMatch bits::match_::bs_match;
            slow IsAnyNativeRecord records::is_any_native_record;
            slow IsNativeRecord records::is_native_record;
            slow GetRecordElements records::get_record_elements;
            slow PutRecord records::put_record;
            slow IsRecordAccessible records::is_record_accessible;
            slow GetRecordField records::get_record_field;
        }
    };
}
pub(super) use all_arms;
