//! The arms of type tests.

use crate::interp::regs::header;
use crate::term::{RawTerm, am, tag};

arms! {
    /// `is_integer`
    fn is_integer(r, i: IsInteger) {
        let word = r.get(i.src());
        let big = tag::HEADER_MASK & !4;
        let holds = word & 0xF == tag::SMALL || header(word) & big == tag::POS_BIG;
        r.test(i, i.fail(), holds)
    }

    /// `is_float`
    fn is_float(r, i: IsFloat) {
        let holds = header(r.get(i.src())) & tag::HEADER_MASK == tag::FLOAT;
        r.test(i, i.fail(), holds)
    }

    /// `is_number`
    fn is_number(r, i: IsNumber) {
        let word = r.get(i.src());
        let head = header(word) & tag::HEADER_MASK;
        let holds = word & 0xF == tag::SMALL || head & !4 == tag::POS_BIG || head == tag::FLOAT;
        r.test(i, i.fail(), holds)
    }

    /// `is_atom`
    fn is_atom(r, i: IsAtom) {
        let holds = r.get(i.src()) & tag::IMMED2_MASK == tag::ATOM;
        r.test(i, i.fail(), holds)
    }

    /// `is_boolean`
    fn is_boolean(r, i: IsBoolean) {
        let word = r.get(i.src());
        let holds = word == am::true_.raw().0 || word == am::false_.raw().0;
        r.test(i, i.fail(), holds)
    }

    /// `is_pid`
    fn is_pid(r, i: IsPid) {
        let word = r.get(i.src());
        let holds = word & 0xF == tag::PID || header(word) & tag::HEADER_MASK == tag::EXTERNAL_PID;
        r.test(i, i.fail(), holds)
    }

    /// `is_port`
    fn is_port(r, i: IsPort) {
        let word = r.get(i.src());
        let holds = word & 0xF == tag::PORT || header(word) & tag::HEADER_MASK == tag::EXTERNAL_PORT;
        r.test(i, i.fail(), holds)
    }

    /// `is_reference`
    fn is_reference(r, i: IsReference) {
        let head = header(r.get(i.src())) & tag::HEADER_MASK;
        r.test(i, i.fail(), head == tag::REF || head == tag::EXTERNAL_REF)
    }

    /// `is_nil`
    fn is_nil(r, i: IsNil) {
        let holds = r.get(i.src()) == tag::NIL;
        r.test(i, i.fail(), holds)
    }

    /// `is_list`
    fn is_list(r, i: IsList) {
        let word = r.get(i.src());
        r.test(i, i.fail(), word & tag::PRIMARY_MASK == tag::LIST || word == tag::NIL)
    }

    /// `is_nonempty_list`
    fn is_nonempty_list(r, i: IsNonemptyList) {
        let holds = r.get(i.src()) & tag::PRIMARY_MASK == tag::LIST;
        r.test(i, i.fail(), holds)
    }

    /// `is_tuple`
    fn is_tuple(r, i: IsTuple) {
        let holds = header(r.get(i.src())) & tag::HEADER_MASK == tag::ARITYVAL;
        r.test(i, i.fail(), holds)
    }

    /// `test_arity`
    fn test_arity(r, i: TestArity) {
        let head = *RawTerm(r.get(i.src())).ptr();
        r.test(i, i.fail(), head == tag::make_header(i.arity(), tag::ARITYVAL))
    }

    /// `is_tuple`, `test_arity`
    fn is_tuple_of_arity(r, i: IsTupleOfArity) {
        let head = header(r.get(i.src()));
        r.test(i, i.fail(), head == tag::make_header(i.arity(), tag::ARITYVAL))
    }

    /// `is_tuple`, `test_arity` of a large tuple.
    fn is_tuple_of_arity_wide(r, i: IsTupleOfArityWide) {
        let head = header(r.get(i.src()));
        r.test(i, i.fail(), head == tag::make_header(i.arity() as usize, tag::ARITYVAL))
    }

    /// `is_tagged_tuple`
    fn is_tagged_tuple(r, i: IsTaggedTuple) {
        let word = r.get(i.src());
        let holds = header(word) == tag::make_header(i.arity(), tag::ARITYVAL)
            && *RawTerm(word).ptr().add(1) == i.tag().0;
        r.test(i, i.fail(), holds)
    }

    /// `is_tagged_tuple` of a large tuple.
    fn is_tagged_tuple_wide(r, i: IsTaggedTupleWide) {
        let word = r.get(i.src());
        let holds = header(word) == tag::make_header(i.arity() as usize, tag::ARITYVAL)
            && *RawTerm(word).ptr().add(1) == i.tag().0;
        r.test(i, i.fail(), holds)
    }

    /// `is_binary`
    fn is_binary(r, i: IsBinary) {
        let word = r.get(i.src());
        let head = header(word) & tag::HEADER_MASK;
        let is_bits = head == tag::HEAP_BITS || head == tag::SUB_BITS;
        let holds = is_bits && r.term(word).as_binary().is_some();
        r.test(i, i.fail(), holds)
    }

    /// `is_bitstr`
    fn is_bitstr(r, i: IsBitstr) {
        let head = header(r.get(i.src())) & tag::HEADER_MASK;
        r.test(i, i.fail(), head == tag::HEAP_BITS || head == tag::SUB_BITS)
    }

    /// `is_map`
    fn is_map(r, i: IsMap) {
        let holds = header(r.get(i.src())) & tag::HEADER_MASK == tag::MAP;
        r.test(i, i.fail(), holds)
    }

    /// `is_function`
    fn is_function(r, i: IsFunction) {
        let holds = header(r.get(i.src())) & tag::HEADER_MASK == tag::FUN;
        r.test(i, i.fail(), holds)
    }

    /// `is_function2`
    fn is_function2(r, i: IsFunction2) {
        let (fun, arity) = (r.term(r.src(i.src())), r.term(r.src(i.arity())));
        let arity = arity.as_small();
        let holds = fun.as_fun().is_some_and(|f| arity == Some(i64::from(f.arity())));
        r.test(i, i.fail(), holds)
    }
}
