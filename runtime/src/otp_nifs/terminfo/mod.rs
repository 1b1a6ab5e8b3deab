//! Descriptions of terminals: finds and reads them, and answers OTP's questions as ncurses does. Source: `term(5)`,
//! `terminfo(5)`; `setupterm`, `tgetnum`, `tgetflag`, `tigetstr` of ncurses 6.

pub(super) mod names;
pub(super) mod tparm;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use names::{BOOLEANS, NUMBERS, Row, STRINGS};

/// Where descriptions are looked for behind the user's own places.
const SYSTEM: [&str; 3] = ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"];

/// The first word of a file with numbers of 16 bits.
const MAGIC: u16 = 0o432;
/// The first word of a file with numbers of 32 bits.
const MAGIC_32: u16 = 0o1036;
/// A number that is not there.
const ABSENT: i32 = -1;

/// The value of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// The terminal does not have it.
    Absent,
    /// The description says that it has none.
    Cancelled,
    /// This.
    Is(Vec<u8>),
}

/// The description of a terminal.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    booleans: Vec<bool>,
    numbers: Vec<i32>,
    strings: Vec<Text>,
    /// Capabilities of the description's own, by name.
    more_booleans: Vec<(String, bool)>,
    more_numbers: Vec<(String, i32)>,
    more_strings: Vec<(String, Text)>,
}

/// The place of a capability with this code in a table: two characters of it count.
fn by_code(table: &[Row], code: &[u8]) -> Option<usize> {
    let code = code.get(..2)?;
    table.iter().position(|row| row.1.as_bytes() == code)
}

/// The value of a description's own capability with this code.
fn own<T: Copy>(values: &[(String, T)], code: &[u8]) -> Option<T> {
    let code = code.get(..2)?;
    let found = values.iter().find(|(name, _)| name.as_bytes() == code);
    found.map(|(_, value)| *value)
}

impl Terminal {
    /// The terminal that `$TERM` names; `None` where no description of it is found, or it is none that can be used.
    pub(super) fn of_environment() -> Option<Terminal> {
        let name = env::var_os("TERM").filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| OsString::from("unknown"));
        let name = name.to_str().filter(|name| !name.contains('/'))?;
        let file = |dir: PathBuf| {
            let letter = name.chars().next()?;
            let hexadecimal = format!("{:x}", u32::from(letter));
            let places = [letter.to_string(), hexadecimal].map(|sub| dir.join(sub).join(name));
            places.iter().find_map(|place| fs::read(place).ok())
        };
        let bytes = places().into_iter().find_map(file)?;
        let mut terminal = Terminal::parse(&bytes)?;
        if terminal.is_generic() {
            return None;
        }
        terminal.take_size();
        Some(terminal)
    }

    /// Lines and columns are what the environment says, or else the description, or else 24 and 80.
    fn take_size(&mut self) {
        for (code, variable, usual) in [("li", "LINES", 24), ("co", "COLUMNS", 80)] {
            let said = env::var(variable).ok().and_then(|text| text.parse().ok());
            let at = by_code(&NUMBERS, code.as_bytes()).expect("a row of the table");
            if self.numbers.len() <= at {
                self.numbers.resize(at + 1, ABSENT);
            }
            let number = &mut self.numbers[at];
            *number = match said.filter(|said: &i32| *said > 0) {
                Some(said) => said,
                None if *number > 0 => *number,
                None => usual,
            };
        }
    }

    /// It stands for no terminal in particular.
    fn is_generic(&self) -> bool {
        self.flag(b"gn")
    }

    /// The number with this code, as `tgetnum` gives it.
    pub(super) fn number(&self, code: &[u8]) -> i32 {
        match by_code(&NUMBERS, code) {
            Some(at) => self.numbers.get(at).copied().unwrap_or(ABSENT),
            None => own(&self.more_numbers, code).unwrap_or(ABSENT),
        }
    }

    /// Whether the terminal has what this code stands for, as `tgetflag` tells it.
    pub(super) fn flag(&self, code: &[u8]) -> bool {
        match by_code(&BOOLEANS, code) {
            Some(at) => self.booleans.get(at).copied().unwrap_or(false),
            None => own(&self.more_booleans, code).unwrap_or(false),
        }
    }

    /// The string of this name, as `tigetstr` gives it; `Cancelled` also for a name that is none.
    pub(super) fn string(&self, name: &[u8]) -> Text {
        if let Some(at) = STRINGS.iter().position(|row| row.0.as_bytes() == name) {
            return self.strings.get(at).cloned().unwrap_or(Text::Absent);
        }
        let found = self
            .more_strings
            .iter()
            .find(|(own, _)| own.as_bytes() == name);
        found.map_or(Text::Cancelled, |(_, text)| text.clone())
    }

    /// Reads a compiled description; `None` where it is damaged.
    fn parse(bytes: &[u8]) -> Option<Terminal> {
        let mut r = Reader { bytes, at: 0 };
        let number_bytes = match r.u16()? {
            MAGIC => 2,
            MAGIC_32 => 4,
            _ => return None,
        };
        let [names, booleans, numbers, strings, table] = r.section_sizes()?;
        r.take(names)?;
        let mut terminal = Terminal {
            booleans: r.booleans(booleans)?,
            ..Terminal::default()
        };
        r.align();
        terminal.numbers = r.numbers(numbers, number_bytes)?;
        let offsets = r.offsets(strings)?;
        let table = r.take(table)?;
        terminal.strings = offsets
            .iter()
            .map(|offset| text_at(table, *offset))
            .collect();
        r.align();
        // What comes behind is not in each description, and nothing is lost where it cannot be read.
        let _ = terminal.parse_own(&mut r, number_bytes);
        Some(terminal)
    }

    /// Reads capabilities of the description's own: their values first, then their names.
    fn parse_own(&mut self, r: &mut Reader<'_>, number_bytes: usize) -> Option<()> {
        let [booleans, numbers, strings, _, table] = r.section_sizes()?;
        let boolean_values = r.booleans(booleans)?;
        r.align();
        let number_values = r.numbers(numbers, number_bytes)?;
        let string_values = r.offsets(strings)?;
        let name_offsets = r.offsets(booleans + numbers + strings)?;
        let table = r.take(table)?;
        let string_values: Vec<Text> = string_values.iter().map(|at| text_at(table, *at)).collect();
        // Names stand behind the last of the strings.
        let ends = string_values.iter().filter_map(|text| match text {
            Text::Is(text) => Some(text.len() + 1),
            _ => None,
        });
        let name_table = table.get(ends.sum()..)?;
        let name = |at: &i16| match text_at(name_table, *at) {
            Text::Is(name) => String::from_utf8(name).unwrap_or_default(),
            _ => String::new(),
        };
        let mut names = name_offsets.iter().map(name);
        let mut named = || names.next().unwrap_or_default();
        self.more_booleans = boolean_values
            .into_iter()
            .map(|value| (named(), value))
            .collect();
        self.more_numbers = number_values
            .into_iter()
            .map(|value| (named(), value))
            .collect();
        self.more_strings = string_values
            .into_iter()
            .map(|value| (named(), value))
            .collect();
        Some(())
    }
}

/// The directories in which descriptions are looked for, the first one first.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    let system = SYSTEM.map(PathBuf::from);
    places.extend(env::var_os("TERMINFO").map(PathBuf::from));
    places.extend(env::var_os("HOME").map(|home| Path::new(&home).join(".terminfo")));
    match env::var_os("TERMINFO_DIRS") {
        // An empty name in the list stands for the system's own places.
        Some(dirs) => places.extend(env::split_paths(&dirs).flat_map(|dir| {
            if dir.as_os_str().is_empty() {
                system.to_vec()
            } else {
                vec![dir]
            }
        })),
        None => places.extend(system),
    }
    places
}

/// The string at an offset in a table of strings.
fn text_at(table: &[u8], offset: i16) -> Text {
    match offset {
        -2 => Text::Cancelled,
        _ => {
            let rest = usize::try_from(offset).ok().and_then(|at| table.get(at..));
            rest.map_or(Text::Absent, |rest| {
                let text = rest.split(|byte| *byte == 0).next();
                Text::Is(text.unwrap_or_default().to_vec())
            })
        }
    }
}

/// A reader of a description: the bytes that are left.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// The five sizes that a section begins with.
    fn section_sizes(&mut self) -> Option<[usize; 5]> {
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = usize::from(self.u16()?);
        }
        Some(counts)
    }

    /// Goes to an even place.
    fn align(&mut self) {
        self.at += self.at % 2;
    }

    fn booleans(&mut self, count: usize) -> Option<Vec<bool>> {
        Some(self.take(count)?.iter().map(|byte| *byte != 0).collect())
    }

    fn numbers(&mut self, count: usize, bytes: usize) -> Option<Vec<i32>> {
        let taken = self.take(count * bytes)?;
        let number = |bytes: &[u8]| match *bytes {
            [a, b] => i32::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
            _ => ABSENT,
        };
        Some(taken.chunks_exact(bytes).map(number).collect())
    }

    fn offsets(&mut self, count: usize) -> Option<Vec<i16>> {
        let taken = self.take(count * 2)?;
        let offset = |pair: &[u8]| i16::from_le_bytes([pair[0], pair[1]]);
        Some(taken.chunks_exact(2).map(offset).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description with these numbers of 16 bits at their places, `am`, and `bel` as second string.
    fn description(numbers: &[i16], own: bool) -> Vec<u8> {
        let name = b"a|b\0";
        let mut bytes = Vec::new();
        let words = |bytes: &mut Vec<u8>, words: &[i16]| {
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        };
        words(
            &mut bytes,
            &[0o432, name.len() as i16, 2, numbers.len() as i16, 3, 2],
        );
        bytes.extend(name);
        bytes.extend([0, 1]);
        words(&mut bytes, numbers);
        words(&mut bytes, &[-1, 0, -2]);
        bytes.extend(b"\x07\0");
        if own {
            // One of each: XT, U8#1, E3="x".
            words(&mut bytes, &[1, 1, 1, 4, 11]);
            bytes.extend([1, 0]);
            words(&mut bytes, &[1, 0, 0, 3, 6]);
            bytes.extend(b"x\0XT\0U8\0E3\0");
        }
        bytes
    }

    #[test]
    fn a_description_is_read() {
        let terminal = Terminal::parse(&description(&[80, -1, 24], true)).expect("a description");
        assert!(terminal.flag(b"am") && !terminal.flag(b"bw") && terminal.flag(b"XT"));
        assert_eq!(terminal.number(b"co"), 80);
        assert_eq!(terminal.number(b"cols"), 80);
        assert_eq!(terminal.number(b"it"), -1);
        assert_eq!(terminal.number(b"U8"), 1);
        assert_eq!(terminal.number(b"??"), -1);
        assert_eq!(terminal.string(b"bel"), Text::Is(vec![7]));
        assert_eq!(terminal.string(b"cbt"), Text::Absent);
        assert_eq!(terminal.string(b"cr"), Text::Cancelled);
        assert_eq!(terminal.string(b"E3"), Text::Is(b"x".to_vec()));
        assert_eq!(terminal.string(b"nosuch"), Text::Cancelled);
    }

    #[test]
    fn a_damaged_description_is_none() {
        let whole = description(&[80, -1, 24], false);
        for end in 0..whole.len() {
            assert!(Terminal::parse(&whole[..end]).is_none(), "{end}");
        }
        assert!(Terminal::parse(&whole).is_some());
        let long = description(&[80], true);
        for end in 0..long.len() {
            // What is its own may be cut off.
            let _ = Terminal::parse(&long[..end]);
        }
        assert!(Terminal::parse(&[0o33, 0]).is_none());
    }

    #[test]
    fn sizes_have_defaults() {
        let mut terminal = Terminal::parse(&description(&[132], false)).expect("a description");
        terminal.take_size();
        assert!(terminal.number(b"co") > 0 && terminal.number(b"li") > 0);
    }
}
