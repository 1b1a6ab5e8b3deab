//! Decodes the operands of generic instructions.

/// Index of an atom in the module's own table; 0 is no atom.
pub type AtomIndex = u32;

/// One operand, 16 bytes.
///
/// Every index was checked when the module was read: atoms, labels, literals, types and registers
/// may be looked up without a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// A number that is no term: an arity, an index, a size.
    U(u64),
    /// An integer term of 64 bits.
    I(i64),
    /// An integer term of more than 64 bits: a row of [`big integers`](super::BeamModule::big).
    Big(u32),
    /// A number too large for its place; only instructions that then must fail have one.
    Overflow,
    /// The empty list.
    Nil,
    /// An atom, by its row in the atom table.
    Atom(AtomIndex),
    /// An x register.
    X(u16),
    /// A stack slot.
    Y(u16),
    /// An x register with what the compiler knows of its type: a row of the type table.
    TypedX(u16, u32),
    /// A stack slot with what the compiler knows of its type: a row of the type table.
    TypedY(u16, u32),
    /// A float register.
    FReg(u16),
    /// A label; 0 means none: raise an exception rather than jump.
    Label(u32),
    /// A literal, by its row.
    Literal(u32),
    /// How many operands follow in the list. Always an instruction's last fixed operand; the
    /// elements come right after it.
    List(u32),
    /// Heap need, as words for plain terms, number of floats and number of funs.
    Alloc {
        /// Words.
        words: u32,
        /// Boxed floats.
        floats: u32,
        /// Funs, without their environments.
        funs: u32,
    },
}

const _: () = assert!(size_of::<Arg>() == 16);

/// The highest register number and one: x and y registers and float registers.
/// Source: `MAX_REG` of OTP's `erl_vm.h`.
pub const MAX_REG: u16 = 1024;
