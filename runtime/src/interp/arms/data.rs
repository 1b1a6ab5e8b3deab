//! The arms that move terms, and make or read cells, tuples and funs.

use crate::term::{RawTerm, tag};

arms! {
    /// `init_yregs`, one of them.
    fn init_y(r, i: InitY) {
        r.set(i.dst(), tag::NIL);
        r.next(i)
    }

    /// `move`
    fn move_rr(r, i: MoveRR) {
        r.set(i.dst(), r.get(i.src()));
        r.next(i)
    }

    /// `move`, twice.
    fn move2_rr(r, i: Move2RR) {
        r.set(i.dst(), r.get(i.src()));
        let (src, dst) = i.second();
        r.set(dst, r.get(src));
        r.next(i)
    }

    /// `move` of a constant.
    fn move_cr(r, i: MoveCR) {
        r.set(i.dst(), i.value().0);
        r.next(i)
    }

    /// `swap`
    fn swap_rr(r, i: SwapRR) {
        let (one, other) = (r.get(i.one()), r.get(i.other()));
        r.set(i.one(), other);
        r.set(i.other(), one);
        r.next(i)
    }

    /// `get_list`
    fn get_list(r, i: GetList) {
        let cell = RawTerm(r.get(i.list())).ptr();
        let (head, tail) = (*cell, *cell.add(1));
        r.set(i.head(), head);
        r.set(i.tail(), tail);
        r.next(i)
    }

    /// `is_nonempty_list`, `get_list`
    fn is_nonempty_list_get_list(r, i: IsNonemptyListGetList) {
        let list = r.get(i.list());
        if list & tag::PRIMARY_MASK != tag::LIST {
            return r.jump(i.fail());
        }
        let cell = RawTerm(list).ptr();
        let (head, tail) = (*cell, *cell.add(1));
        r.set(i.head(), head);
        r.set(i.tail(), tail);
        r.next(i)
    }

    /// `get_hd`
    fn get_hd(r, i: GetHd) {
        r.set(i.dst(), *RawTerm(r.get(i.list())).ptr());
        r.next(i)
    }

    /// `get_tl`
    fn get_tl(r, i: GetTl) {
        r.set(i.dst(), *RawTerm(r.get(i.list())).ptr().add(1));
        r.next(i)
    }

    /// `get_tuple_element`
    fn get_tuple_element(r, i: GetTupleElement) {
        r.set(i.dst(), *RawTerm(r.get(i.tuple())).ptr().add(1 + i.index()));
        r.next(i)
    }

    /// `get_tuple_element` of a large tuple.
    fn get_tuple_element_wide(r, i: GetTupleElementWide) {
        r.set(i.dst(), *RawTerm(r.get(i.tuple())).ptr().add(1 + i.index() as usize));
        r.next(i)
    }

    /// `get_tuple_element` of two side by side.
    fn get_tuple_element2(r, i: GetTupleElement2) {
        let elements = RawTerm(r.get(i.tuple())).ptr().add(1 + i.index());
        r.set(i.dst(), *elements);
        r.set(i.second(), *elements.add(1));
        r.next(i)
    }

    /// `put_list`
    fn put_list_rr(r, i: PutListRR) {
        let cell = r.htop as u64 | tag::LIST;
        r.put(r.get(i.head()));
        r.put(r.get(i.tail()));
        r.set(i.dst(), cell);
        r.next(i)
    }

    /// `put_list` with a constant head.
    fn put_list_cr(r, i: PutListCR) {
        let cell = r.htop as u64 | tag::LIST;
        r.put(i.head().0);
        r.put(r.get(i.tail()));
        r.set(i.dst(), cell);
        r.next(i)
    }

    /// `put_list` with a constant tail.
    fn put_list_rc(r, i: PutListRC) {
        let cell = r.htop as u64 | tag::LIST;
        r.put(r.get(i.head()));
        r.put(i.tail().0);
        r.set(i.dst(), cell);
        r.next(i)
    }

    /// `put_tuple2`
    fn put_tuple(r, i: PutTuple) {
        let tuple = r.htop as u64 | tag::BOXED;
        r.put(tag::make_header(i.arity(), tag::ARITYVAL));
        for element in i.elements().iter() {
            r.put(r.src(element));
        }
        r.set(i.dst(), tuple);
        r.next(i)
    }

    /// `put_tuple2` of a large tuple.
    fn put_tuple_wide(r, i: PutTupleWide) {
        let tuple = r.htop as u64 | tag::BOXED;
        r.put(tag::make_header(i.arity() as usize, tag::ARITYVAL));
        for element in i.elements().iter() {
            r.put(r.src(element));
        }
        r.set(i.dst(), tuple);
        r.next(i)
    }

    /// `set_tuple_element`
    fn set_tuple_element(r, i: SetTupleElement) {
        let value = r.get(i.value());
        *RawTerm(r.get(i.tuple())).ptr().add(1 + i.index()) = value;
        r.next(i)
    }

    /// `set_tuple_element` of a large tuple.
    fn set_tuple_element_wide(r, i: SetTupleElementWide) {
        let value = r.get(i.value());
        *RawTerm(r.get(i.tuple())).ptr().add(1 + i.index() as usize) = value;
        r.next(i)
    }

    /// `make_fun3`
    fn make_fun(r, i: MakeFun) {
        let (entry, count) = (i.lambda(), i.count() as u8);
        let fun = r.htop as u64 | tag::BOXED;
        r.put(tag::fun::make_header(entry.arity - count, count, false));
        r.put(std::ptr::from_ref(entry) as u64);
        for free in i.free().iter() {
            r.put(r.src(free));
        }
        r.set(i.dst(), fun);
        r.next(i)
    }
}
