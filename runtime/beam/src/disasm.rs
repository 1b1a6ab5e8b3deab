//! Writes a module's code as text, in the manner of `erlc -S`.
//!
//! References to tables are resolved: imports appear as `{extfunc,M,F,A}`, lambdas as `{fun,Name,Arity,NumFree}`, lines
//! as file and number, strings as bytes, and types as what they say.

use std::fmt::{self, Display, Write as _};

use super::genop::Op;
use super::module::{BeamModule, BeamType, Function, Instr};
use super::operand::{Arg, AtomIndex};

/// A module's code as text, made by [`Display`].
pub struct Disasm<'a> {
    module: &'a BeamModule,
    literal: Option<&'a LiteralText<'a>>,
}

/// Makes text of a literal, given in the external term format.
pub type LiteralText<'a> = dyn Fn(&[u8]) -> String + 'a;

impl<'a> Disasm<'a> {
    /// Text where literals are given by their rows, as in `{literal,7}`.
    #[must_use]
    pub fn new(module: &'a BeamModule) -> Self {
        Disasm {
            module,
            literal: None,
        }
    }

    /// Shows literals as `literal` writes them.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn with_literals(mut self, literal: &'a LiteralText<'a>) -> Self {
        self.literal = Some(literal);
        self
    }
}

impl Display for Disasm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = self.module;
        writeln!(f, "{{module,{}}}.", self.atom(m.name))?;
        write!(f, "{{md5,<<16#")?;
        for byte in m.md5 {
            write!(f, "{byte:02x}")?;
        }
        writeln!(f, ":128>>}}.")?;
        f.write_str("{exports,[")?;
        for (i, e) in m.exports.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{{{},{}}}", self.atom(e.function), e.arity)?;
        }
        writeln!(f, "]}}.")?;
        for r in &m.records {
            self.record(f, r)?;
        }
        writeln!(f, "{{labels,{}}}.", m.label_count)?;
        for function in &m.functions {
            self.function(f, function)?;
        }
        Ok(())
    }
}

impl Disasm<'_> {
    fn atom(&self, index: AtomIndex) -> AtomText<'_> {
        AtomText(self.module.atoms.get(index))
    }

    fn record(&self, f: &mut fmt::Formatter<'_>, r: &super::module::RecordDef) -> fmt::Result {
        let exported = if r.exported { "exported" } else { "local" };
        write!(f, "{{record,{},{exported},[", self.atom(r.name))?;
        for (i, (name, value)) in r.fields.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match value {
                None => write!(f, "{comma}{}", self.atom(*name))?,
                Some(value) => {
                    write!(f, "{comma}{{{},", self.atom(*name))?;
                    self.arg(f, *value)?;
                    f.write_char('}')?;
                }
            }
        }
        writeln!(f, "]}}.")
    }

    fn function(&self, f: &mut fmt::Formatter<'_>, function: &Function) -> fmt::Result {
        let Function {
            name,
            arity,
            entry_label,
            first,
            end,
            ..
        } = *function;
        writeln!(
            f,
            "\n{{function,{},{arity},{entry_label}}}.",
            self.atom(name)
        )?;
        for instr in &self.module.code[first as usize..end as usize] {
            f.write_str(if instr.op == Op::Label { "  " } else { "    " })?;
            self.instr(f, instr)?;
            f.write_char('.')?;
            if let Some(callee) = self.local_callee(instr) {
                write!(f, " % {}/{}", self.atom(callee.name), callee.arity)?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }

    /// The function that a local call goes to.
    fn local_callee(&self, instr: &Instr) -> Option<&Function> {
        match (instr.op, self.module.args(instr)) {
            (Op::Call | Op::CallLast | Op::CallOnly, [_, Arg::Label(label), ..]) => self
                .module
                .function_at(*label)
                .map(|f| &self.module.functions[f as usize]),
            _ => None,
        }
    }

    fn instr(&self, f: &mut fmt::Formatter<'_>, instr: &Instr) -> fmt::Result {
        let args = self.module.args(instr);
        if args.is_empty() {
            return f.write_str(instr.op.name());
        }
        write!(f, "{{{}", instr.op.name())?;
        for (i, arg) in args[..instr.op.arity()].iter().enumerate() {
            f.write_char(',')?;
            match *arg {
                Arg::List(_) => self.list(f, instr)?,
                arg if self.table_row(f, instr.op, i, arg, args)? => {}
                arg => self.arg(f, arg)?,
            }
        }
        f.write_char('}')
    }

    /// Writes an operand that is a row of a table by what the row says; false where it is none.
    fn table_row(
        &self,
        f: &mut fmt::Formatter<'_>,
        op: Op,
        i: usize,
        arg: Arg,
        args: &[Arg],
    ) -> Result<bool, fmt::Error> {
        let Arg::U(row) = arg else { return Ok(false) };
        let row = row as usize;
        match (op, i) {
            (Op::CallExt | Op::CallExtLast | Op::CallExtOnly, 1)
            | (Op::Bif0, 0)
            | (Op::Bif1 | Op::Bif2 | Op::Bif3, 1)
            | (Op::GcBif1 | Op::GcBif2 | Op::GcBif3, 2) => {
                let import = &self.module.imports[row];
                let (m, n) = (self.atom(import.module), self.atom(import.function));
                write!(f, "{{extfunc,{m},{n},{}}}", import.arity)?;
            }
            (Op::MakeFun2 | Op::MakeFun3 | Op::CallFun2, 0) => {
                let l = &self.module.lambdas[row];
                write!(
                    f,
                    "{{fun,{},{},{}}}",
                    self.atom(l.function),
                    l.arity,
                    l.num_free
                )?;
            }
            (Op::Line | Op::ExecutableLine, 0) | (Op::DebugLine, 1) => {
                let Some(lines) = &self.module.lines else {
                    return Ok(false);
                };
                let item = &lines.items[row];
                if item.line == 0 {
                    f.write_str("[]")?;
                } else {
                    write!(f, "{{{:?},{}}}", lines.files[item.file as usize], item.line)?;
                }
            }
            (Op::BsMatchString, 3) => {
                let Arg::U(bits) = args[2] else {
                    return Ok(false);
                };
                self.string(f, row, (bits as usize).div_ceil(8))?;
            }
            (Op::BsPutString, 1) => {
                let Arg::U(bytes) = args[0] else {
                    return Ok(false);
                };
                self.string(f, row, bytes as usize)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, instr: &Instr) -> fmt::Result {
        let list = self.module.list(instr);
        f.write_str("{list,[")?;
        for (i, arg) in list.iter().enumerate() {
            if i > 0 {
                f.write_char(',')?;
            }
            match *arg {
                Arg::U(offset)
                    if instr.op == Op::BsCreateBin && i % 6 == 4 && self.is_string(list[i - 4]) =>
                {
                    let bytes = match list[i + 1] {
                        Arg::U(n) => n as usize,
                        Arg::I(n) => n as usize,
                        _ => 0,
                    };
                    self.string(f, offset as usize, bytes)?;
                }
                arg => self.arg(f, arg)?,
            }
        }
        f.write_str("]}")
    }

    fn is_string(&self, arg: Arg) -> bool {
        matches!(arg, Arg::Atom(atom) if self.module.atoms.get(atom) == "string")
    }

    fn string(&self, f: &mut fmt::Formatter<'_>, offset: usize, bytes: usize) -> fmt::Result {
        let text = &self.module.strings[offset..offset + bytes];
        if !text.is_empty() && text.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'"') {
            return write!(f, "{{string,<<\"{}\">>}}", text.escape_ascii());
        }
        f.write_str("{string,<<")?;
        for (i, byte) in text.iter().enumerate() {
            write!(f, "{}{byte}", if i == 0 { "" } else { "," })?;
        }
        f.write_str(">>}")
    }

    fn arg(&self, f: &mut fmt::Formatter<'_>, arg: Arg) -> fmt::Result {
        match arg {
            Arg::U(n) => write!(f, "{n}"),
            Arg::I(n) => write!(f, "{{integer,{n}}}"),
            Arg::Big(row) => {
                f.write_str("{integer,16#")?;
                self.module
                    .big(row)
                    .iter()
                    .try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_char('}')
            }
            Arg::Overflow => f.write_str("overflow"),
            Arg::Nil => f.write_str("nil"),
            Arg::Atom(atom) => write!(f, "{{atom,{}}}", self.atom(atom)),
            Arg::X(n) => write!(f, "{{x,{n}}}"),
            Arg::Y(n) => write!(f, "{{y,{n}}}"),
            Arg::TypedX(n, row) => self.typed(f, 'x', n, row),
            Arg::TypedY(n, row) => self.typed(f, 'y', n, row),
            Arg::FReg(n) => write!(f, "{{fr,{n}}}"),
            Arg::Label(n) => write!(f, "{{f,{n}}}"),
            Arg::Literal(row) => match self.literal {
                Some(text) => write!(f, "{{literal,{}}}", text(self.module.literals.get(row))),
                None => write!(f, "{{literal,{row}}}"),
            },
            Arg::List(n) => write!(f, "{{list,{n}}}"),
            Arg::Alloc {
                words,
                floats,
                funs,
            } => {
                write!(
                    f,
                    "{{alloc,[{{words,{words}}},{{floats,{floats}}},{{funs,{funs}}}]}}"
                )
            }
        }
    }

    fn typed(&self, f: &mut fmt::Formatter<'_>, kind: char, n: u16, row: u32) -> fmt::Result {
        write!(f, "{{tr,{{{kind},{n}}}")?;
        match &self.module.types {
            Some(types) => write!(f, ",{}}}", TypeText(&types[row as usize])),
            None => f.write_char('}'),
        }
    }
}

/// Writes an atom as Erlang does, quoted where it must be.
struct AtomText<'a>(&'a str);

const RESERVED: &[&str] = &[
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "else", "end", "fun", "if", "let", "maybe", "not", "of", "or",
    "orelse", "receive", "rem", "try", "when", "xor",
];

impl Display for AtomText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0;
        let plain = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@')
            && !RESERVED.contains(&text);
        if plain {
            return f.write_str(text);
        }
        f.write_char('\'')?;
        for c in text.chars() {
            match c {
                '\'' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\x{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('\'')
    }
}

/// Writes a type as a union of names, with bounds and unit.
struct TypeText<'a>(&'a BeamType);

const TYPE_NAMES: [&str; 13] = [
    "atom",
    "bitstring",
    "cons",
    "float",
    "fun",
    "integer",
    "map",
    "nil",
    "pid",
    "port",
    "reference",
    "tuple",
    "record",
];

impl Display for TypeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BeamType {
            union,
            min,
            max,
            unit,
        } = *self.0;
        let mut separator = "";
        if union == BeamType::ANY {
            f.write_str("any")?;
        } else {
            for (bit, name) in TYPE_NAMES.iter().enumerate() {
                if union & 1 << bit != 0 {
                    write!(f, "{separator}{name}")?;
                    separator = "|";
                }
            }
        }
        if min.is_some() || max.is_some() {
            let bound = |b: Option<i64>| b.map_or_else(String::new, |b| b.to_string());
            write!(f, "({}..{})", bound(min), bound(max))?;
        }
        match unit {
            Some(unit) => write!(f, "({unit})"),
            None => Ok(()),
        }
    }
}
