//! The arms of the interpreter, by family: what each instruction does. The loop (`run.rs`) inlines all of them.
//!
//! Each arm has the contract of the loop: I1 for the instruction, whose operands are what its row says; I3 and P2 for
//! registers, T1 for their terms; H1 for heap and stack: the compiler has asked for the words that the arm writes
//! (`test_heap`, `allocate`).

/// Arms: functions of the loop's registers and of an instruction. One with `<SAVES>` has an instance for processes
/// that save their calls.
macro_rules! arms {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident $(<$saves:ident>)? ($r:ident, $i:ident: $op:ident) $body:block
    )*) => { $(
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// The contract of `arms/mod.rs`.
        #[inline(always)]
        pub(in crate::interp) unsafe fn $name $(<const $saves: bool>)? (
            $r: &mut $crate::interp::regs::Regs<'_>,
            $i: $crate::code::op::read::$op,
        ) -> $crate::interp::regs::Go {
            #[allow(unused_unsafe, reason = "some arms need none")]
            // SAFETY: the contract of `arms/mod.rs`.
            unsafe {
                $body
            }
        }
    )* };
}

pub(super) mod arith;
pub(super) mod bifs;
pub(super) mod calls;
pub(super) mod data;
pub(super) mod entries;
pub(super) mod floats;
pub(super) mod frames;
pub(super) mod handlers;
pub(super) mod order;
pub(super) mod receive;
pub(super) mod select;
pub(super) mod types;
