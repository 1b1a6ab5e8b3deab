//! Writes the machine code of functions as text, below the specific instructions that it was made of.
//!
//! `@12` is the instruction at word 12 of its module, as in the text of [`Specific`]; `@12.1` is a place in its machine
//! code. What stands behind all instructions, because it is seldom needed, has its instruction's name once more.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::rc::Rc;
use std::sync::OnceLock;

use beamline_formats::machine_code::Request;
use beamline_formats::name;
use beamline_settings::variable::Variable as _;
use iced_x86::{
    Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, MemorySizeOptions,
    OpKind, Register, SymbolResolver, SymbolResult,
};

use super::compile;
use super::stubs::name_in_table;
use crate::code::machine_code::Compiled;
use crate::code::op::entry as head;
use crate::hash::HashMap;
use crate::interp::helpers::word_at;
use crate::loader::disasm::Specific;
use crate::loader::module::Module;
use crate::sys::chance::names;
use crate::sys::stderr::complain;
use crate::term::entry::ACTIVE;

/// The functions of a prepared module for which `is_meant` says so (by name and arity), in order: their names, and their
/// machine code as text. None of it is run.
pub fn native_code(
    module: &Module,
    is_meant: impl Fn(&str, u8) -> bool,
) -> impl Iterator<Item = String> {
    let entries = module.functions.iter().copied();
    let meant = entries.filter(move |&entry| {
        let mfa = module.mfa(entry);
        is_meant(mfa.function.name(), mfa.arity)
    });
    meant.map(|entry| text(module, entry, &compile::function(module, entry)))
}

static ASKED: OnceLock<Request> = OnceLock::new();

/// Has functions written that are compiled from now on, if the environment asks for some.
///
/// # Errors
/// One line that says what is wrong with it.
pub(super) fn start_from_environment() -> Result<(), String> {
    if let Some(request) = Request::from_environment()? {
        let _ = ASKED.set(request);
    }
    Ok(())
}

/// A function has been compiled.
pub(super) fn function(module: &Module, entry: u32, compiled: &Compiled) {
    let Some(asked) = ASKED.get() else { return };
    let mfa = module.mfa(entry);
    let (module_name, function) = (mfa.module.name(), mfa.function.name());
    if !asked
        .pattern
        .matches(module_name, function, mfa.arity.into())
    {
        return;
    }
    let file = asked.file(names::own_pid());
    let text = text(module, entry, compiled);
    let append = || -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&file)?;
        file.write_all(text.as_bytes())
    };
    if let Err(error) = append() {
        complain!("beamline: {}: {error}", file.display());
    }
}

/// The text of a compiled function.
fn text(module: &Module, entry: u32, compiled: &Compiled) -> String {
    let mfa = module.mfa(entry);
    let named = name::mfa(mfa.module.name(), mfa.function.name(), mfa.arity.into());
    let mut text = format!("{named}: {} bytes\n\n", compiled.bytes.len());
    let parts = parts(entry, compiled);
    let specific = specific(module, entry, compiled);
    let functions = module.functions.iter().map(|&entry| {
        let mfa = module.mfa(entry);
        (
            entry,
            name::mfa(mfa.module.name(), mfa.function.name(), mfa.arity.into()),
        )
    });
    let mut labels = labels(&decoded(&compiled.bytes), &parts);
    // Where it calls itself.
    labels.insert(0, named);
    let places = Rc::new(Places {
        labels,
        code: module.address(0).word(),
        words: module.code().len() as u64,
        functions: functions.collect(),
    });
    for (n, part) in parts.iter().enumerate() {
        match part.kind {
            Kind::Prologue => {}
            Kind::Behind if n > 0 && parts[n - 1].is_same(part) => {}
            Kind::Instruction => {
                let _ = writeln!(text, "@{:<6} {}", part.of, specific.instruction(part.of));
            }
            Kind::Behind => {
                let name = specific.name(part.of);
                let _ = writeln!(text, "@{:<6} {name}, behind the rest", part.of);
            }
        }
        let end = parts
            .get(n + 1)
            .map_or(compiled.bytes.len(), |next| next.at);
        let names = Names {
            places: places.clone(),
            pointers: specific.pointers(part.of),
        };
        machine_code(&mut text, &compiled.bytes[part.at..end], part, names);
    }
    text.push('\n');
    text
}

/// A stretch of machine code.
struct Part {
    /// Its offset in bytes.
    at: usize,
    /// The offset in words of the instruction that it is of.
    of: u32,
    kind: Kind,
}

impl Part {
    fn is_same(&self, other: &Part) -> bool {
        (self.of, self.kind) == (other.of, other.kind)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Prologue,
    Instruction,
    Behind,
}

/// The parts of a function's code, ascending. Those of instructions without machine code are there, too.
fn parts(entry: u32, compiled: &Compiled) -> Vec<Part> {
    let first = entry - head::WORDS as u32;
    let part = |kind| {
        move |&(words, at): &(u32, u32)| Part {
            at: at as usize,
            of: first + words,
            kind,
        }
    };
    let prologue = [Part {
        at: 0,
        of: entry,
        kind: Kind::Prologue,
    }];
    let instructions = compiled.starts.iter().map(part(Kind::Instruction));
    let behind = compiled.cold.iter().map(part(Kind::Behind));
    let mut all: Vec<Part> = prologue
        .into_iter()
        .chain(instructions)
        .chain(behind)
        .collect();
    all.sort_by_key(|part| (part.at, part.kind, part.of));
    all
}

/// The specific instructions of a function's module, without breakpoints in the function.
fn specific<'m>(module: &'m Module, entry: u32, compiled: &Compiled) -> Specific<'m> {
    let mut specific = Specific::new(module);
    for (words, _) in &compiled.starts {
        let offset = entry - head::WORDS as u32 + words;
        // SAFETY: I1: the loader has put an instruction there.
        specific.set_word(offset, unsafe { word_at(module.address(offset)) });
    }
    specific
}

/// Its instructions. Addresses are offsets in bytes.
fn decoded(code: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, code, 0, DecoderOptions::NONE)
        .into_iter()
        .collect()
}

/// Names of the places that jumps of the function lead to.
fn labels(code: &[Instruction], parts: &[Part]) -> BTreeMap<u64, String> {
    let jumps = code.iter().filter(|i| i.op0_kind() == OpKind::NearBranch64);
    let mut targets: Vec<u64> = jumps.map(Instruction::near_branch64).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut within: BTreeMap<u32, u32> = BTreeMap::new();
    let mut named = |target: u64| {
        let instruction = parts
            .iter()
            .find(|part| part.at as u64 == target && part.kind == Kind::Instruction);
        if let Some(part) = instruction {
            return format!("@{}", part.of);
        }
        let behind = parts.partition_point(|part| part.at as u64 <= target);
        let of = parts[behind - 1].of;
        let n = within.entry(of).or_default();
        *n += 1;
        format!("@{of}.{n}")
    };
    targets
        .into_iter()
        .map(|target| (target, named(target)))
        .collect()
}

/// Writes the machine code of a part, an instruction on each line.
fn machine_code(text: &mut String, code: &[u8], part: &Part, names: Names) {
    let places = names.places.clone();
    let mut formatter = formatter(names);
    for i in Decoder::with_ip(64, code, part.at as u64, DecoderOptions::NONE) {
        let label = places.labels.get(&i.ip());
        if let Some(label) = label.filter(|label| label.starts_with('@') && label.contains('.')) {
            let _ = writeln!(text, "    {label}:");
        }
        let _ = write!(text, "        {:04x}  ", i.ip());
        formatter.format(&i, text);
        text.push('\n');
    }
}

fn formatter(names: Names) -> IntelFormatter {
    let mut formatter = IntelFormatter::with_options(Some(Box::new(names)), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_show_branch_size(false);
    options.set_memory_size_options(MemorySizeOptions::Minimal);
    formatter
}

/// What addresses in the code of a function are of.
struct Places {
    /// Of jumps, by offset in bytes.
    labels: BTreeMap<u64, String>,
    /// Where the specific instructions of the module are, and how many words.
    code: u64,
    words: u64,
    /// The module's functions, by their entries.
    functions: HashMap<u32, String>,
}

/// Names of what machine code of a part points to.
struct Names {
    places: Rc<Places>,
    /// What operands of the part's specific instruction point to.
    pointers: Vec<(u64, String)>,
}

impl Names {
    /// What is at this address.
    fn pointer(&self, address: u64) -> Option<String> {
        let places = &self.places;
        let offset = address.wrapping_sub(places.code) / 8;
        if address >= places.code && offset < places.words {
            let function = places.functions.get(&(offset as u32)).cloned();
            return Some(function.unwrap_or_else(|| format!("@{offset}")));
        }
        if address == (&raw const ACTIVE) as u64 {
            return Some("active_code_index".to_owned());
        }
        let found = self
            .pointers
            .iter()
            .find(|(pointer, _)| *pointer == address);
        found.map(|(_, name)| name.clone())
    }
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        i: &Instruction,
        operand: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let name = match i.op_kind(operand) {
            OpKind::NearBranch64 => self.places.labels.get(&address).cloned(),
            OpKind::Memory if i.memory_base() == Register::R12 => {
                name_in_table(address as usize / 8).map(str::to_owned)
            }
            OpKind::Immediate64 => self.pointer(address),
            _ => None,
        };
        name.map(|name| SymbolResult::with_string(address, name))
    }
}

#[cfg(test)]
mod tests {
    use beamline_needs::{Need, skipped};

    use super::*;
    use crate::loader::load::prepare;

    /// The lines of a function's text that begin with its instructions' labels: their offsets, and the names of the
    /// instructions; and how many lines of machine code are below each.
    fn instructions(text: &str) -> Vec<(u32, &str, usize)> {
        let mut all: Vec<(u32, &str, usize)> = Vec::new();
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            if let Some(line) = line.strip_prefix('@') {
                let mut words = line.split_whitespace();
                let offset = words.next().unwrap().parse().unwrap();
                all.push((offset, words.next().unwrap(), 0));
            } else if line.starts_with("        ")
                && let Some(last) = all.last_mut()
            {
                last.2 += 1;
            }
        }
        all
    }

    #[test]
    fn every_instruction_is_there_in_order_with_its_machine_code() {
        crate::hooks::install();
        let files = crate::beam::samples::real_files();
        let mut functions = 0;
        for path in files.iter().step_by(40) {
            let file = std::fs::read(path).expect("a real file is readable");
            let module = prepare(&file).expect("a real file loads");
            let specific = Specific::new(&module);
            let texts = native_code(&module, |_, _| true);
            for (&entry, text) in module.functions.iter().zip(texts) {
                functions += 1;
                let at = module.functions.partition_point(|&other| other <= entry);
                let end = module
                    .functions
                    .get(at)
                    .map(|next| next - head::WORDS as u32);
                let end = end.unwrap_or(module.code().len() as u32);
                let wanted: Vec<u32> = specific.offsets(entry).take_while(|&at| at < end).collect();
                let all = instructions(&text);
                let own: Vec<_> = all
                    .iter()
                    .filter(|(_, name, _)| !name.ends_with(','))
                    .collect();
                let (raises, own) = own.split_last().expect("the head");
                assert_eq!(raises.0, entry - head::WORDS as u32, "{text}");
                let offsets: Vec<u32> = own.iter().map(|(offset, ..)| *offset).collect();
                assert_eq!(offsets, wanted, "{text}");
                for (offset, name, lines) in &all {
                    assert!(*lines > 0, "@{offset} {name} has no machine code:\n{text}");
                }
            }
        }
        if files.is_empty() {
            return skipped(Need::Otp, "there is no OTP; BEAMLINE_OTP names one");
        }
        assert!(functions > 100, "{functions}");
    }

    /// Jumps lead to labels of the same text; calls by the table are of stubs with names.
    #[test]
    fn places_have_names() {
        crate::hooks::install();
        let files = crate::beam::samples::real_files();
        let Some(path) = files.iter().find(|path| path.ends_with("ebin/lists.beam")) else {
            return skipped(Need::Otp, "there is no OTP; BEAMLINE_OTP names one");
        };
        let module = prepare(&std::fs::read(path).unwrap()).expect("a real file loads");
        let (mut jumps, mut own) = (0, 0);
        for text in native_code(&module, |_, _| true) {
            for line in text.lines().filter(|line| line.starts_with("        ")) {
                let (_, code) = line.trim_start().split_once("  ").unwrap();
                let (mnemonic, operands) = code.split_once(' ').unwrap_or((code, ""));
                if text.starts_with(&format!("{operands}: ")) {
                    own += 1;
                } else if mnemonic.starts_with('j') && operands.starts_with('@') {
                    jumps += 1;
                    let is_place = operands.contains('.');
                    let is_there = text.lines().any(|line| match is_place {
                        true => line.trim() == format!("{operands}:"),
                        false => line.split_whitespace().next() == Some(operands),
                    });
                    assert!(is_there, "{operands}:\n{text}");
                } else if mnemonic.starts_with('j') || mnemonic == "call" {
                    let target = operands.strip_prefix("qword ptr [").unwrap_or(operands);
                    let named = target.strip_prefix("r12+");
                    let named = named.is_none_or(|name| name.starts_with(char::is_alphabetic));
                    assert!(target.starts_with('r') && named, "{line}");
                }
            }
        }
        assert!(jumps > 10 && own > 10, "{jumps}, {own}");
    }
}
