//! The arms that make and drop stack frames, ask for room on the heap, return and jump.

arms! {
    /// `jump`
    fn jump(r, i: Jump) {
        r.jump(i.target())
    }

    /// `return`
    fn return_(r, _i: Return) {
        let back = r.pop_return();
        r.return_to(back)
    }

    /// `deallocate`
    fn deallocate(r, i: Deallocate) {
        r.drop_frame(i.frame());
        r.next(i)
    }

    /// `deallocate`, `return`
    fn deallocate_return(r, i: DeallocateReturn) {
        r.drop_frame(i.frame());
        let back = r.pop_return();
        r.return_to(back)
    }

    /// `allocate`
    fn allocate(r, i: Allocate) {
        r.ensure(i.frame() + 1, i.live())?;
        r.stop = r.stop.sub(i.frame());
        r.next(i)
    }

    /// `allocate_heap`
    fn allocate_heap(r, i: AllocateHeap) {
        r.ensure(i.frame() + 1 + i.need(), i.live())?;
        r.stop = r.stop.sub(i.frame());
        r.next(i)
    }

    /// `test_heap`
    fn test_heap(r, i: TestHeap) {
        r.ensure(i.need(), i.live())?;
        r.next(i)
    }

    /// `trim`
    fn trim(r, i: Trim) {
        r.drop_frame(i.dropped());
        r.next(i)
    }
}
