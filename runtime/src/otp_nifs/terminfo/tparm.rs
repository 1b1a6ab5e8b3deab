//! Puts parameters into the strings of terminals (`tparm`), and makes of them what is sent (`tputs`). Source:
//! `terminfo(5)`; `lib_tparm.c` and `lib_tputs.c` of ncurses 6.

use parking_lot::Mutex;

/// Parameters of a string.
pub(in crate::otp_nifs) const PARAMETERS: usize = 9;

/// Variables that strings set (`%P`) and get (`%g`): `a` to `z`, then `A` to `Z`.
static VARIABLES: Mutex<[i32; 52]> = Mutex::new([0; 52]);

/// The most that a width or a precision is taken for.
const WIDEST: usize = 10_000;

struct Machine<'a> {
    rest: &'a [u8],
    parameters: [i32; PARAMETERS],
    /// A string in termcap's way names no parameters: each thing that is printed takes the next one.
    is_termcap: bool,
    stack: Vec<i32>,
    out: Vec<u8>,
}

/// `string` with `parameters` put in.
pub(in crate::otp_nifs) fn tparm(string: &[u8], parameters: [i64; PARAMETERS]) -> Vec<u8> {
    let parameters = parameters.map(|parameter| parameter as i32);
    let mut machine = Machine {
        rest: string,
        parameters,
        is_termcap: !string.windows(2).any(|pair| pair == b"%p"),
        stack: Vec::new(),
        out: Vec::new(),
    };
    if machine.is_termcap {
        let taken = string
            .windows(2)
            .filter(|pair| pair[0] == b'%' && b"doxXcs".contains(&pair[1]));
        let taken = taken.count().min(PARAMETERS);
        machine.stack.extend(parameters[..taken].iter().rev());
    }
    while let Some(byte) = machine.next() {
        if byte == b'%' {
            machine.command();
        } else {
            machine.out.push(byte);
        }
    }
    machine.out
}

/// How a number is printed: `%[:][flags][width[.precision]]`.
#[derive(Default)]
struct Format {
    left: bool,
    plus: bool,
    alternate: bool,
    blank: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

impl Machine<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn pop(&mut self) -> i32 {
        self.stack.pop().unwrap_or(0)
    }

    fn binary(&mut self, operation: impl FnOnce(i32, i32) -> i32) {
        let right = self.pop();
        let left = self.pop();
        self.stack.push(operation(left, right));
    }

    /// What follows a percent sign.
    fn command(&mut self) {
        let Some(byte) = self.next() else { return };
        match byte {
            b'%' => self.out.push(b'%'),
            b'c' => {
                // A zero would end the string.
                let byte = self.pop() as u8;
                self.out.push(if byte == 0 { 0o200 } else { byte });
            }
            b'p' => {
                let at = self.next().unwrap_or(0).wrapping_sub(b'1');
                let value = self.parameters.get(usize::from(at)).copied();
                self.stack.extend(value);
            }
            b'P' | b'g' => self.variable(byte == b'P'),
            b'\'' => {
                let value = self.next();
                self.stack.extend(value.map(i32::from));
                self.next();
            }
            b'{' => self.constant(),
            b'i' => {
                for at in 0..2 {
                    let parameter = self.parameters[at].wrapping_add(1);
                    self.parameters[at] = parameter;
                    // ncurses changes the stack from below, where the last parameters are.
                    if let Some(value) = self.stack.get_mut(at).filter(|_| self.is_termcap) {
                        *value = parameter;
                    }
                }
            }
            b'l' => {
                self.pop();
                self.stack.push(0);
            }
            b't' if self.pop() == 0 => self.skip(true),
            b'e' => self.skip(false),
            b't' | b'?' | b';' => {}
            b'!' => {
                let value = self.pop();
                self.stack.push(i32::from(value == 0));
            }
            b'~' => {
                let value = self.pop();
                self.stack.push(!value);
            }
            b'+' | b'-' | b'*' | b'/' | b'm' | b'&' | b'|' | b'^' | b'=' | b'<' | b'>' | b'A'
            | b'O' => self.operator(byte),
            _ => self.number(byte),
        }
    }

    fn operator(&mut self, operator: u8) {
        self.binary(|left, right| match operator {
            b'+' => left.wrapping_add(right),
            b'-' => left.wrapping_sub(right),
            b'*' => left.wrapping_mul(right),
            b'/' => left.checked_div(right).unwrap_or(0),
            b'm' => left.checked_rem(right).unwrap_or(0),
            b'&' => left & right,
            b'|' => left | right,
            b'^' => left ^ right,
            b'=' => i32::from(left == right),
            b'<' => i32::from(left < right),
            b'>' => i32::from(left > right),
            b'A' => i32::from(left != 0 && right != 0),
            _ => i32::from(left != 0 || right != 0),
        });
    }

    fn variable(&mut self, sets: bool) {
        let at = match self.next() {
            Some(letter @ b'a'..=b'z') => usize::from(letter - b'a'),
            Some(letter @ b'A'..=b'Z') => 26 + usize::from(letter - b'A'),
            _ => return,
        };
        if sets {
            VARIABLES.lock()[at] = self.pop();
        } else {
            self.stack.push(VARIABLES.lock()[at]);
        }
    }

    /// `{Digits}`.
    fn constant(&mut self) {
        let mut value = 0i32;
        while let Some(digit @ b'0'..=b'9') = self.rest.first() {
            value = value.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'));
            self.next();
        }
        self.stack.push(value);
        self.next();
    }

    /// Goes to the end of the conditional expression, or before that to its `%e` of the same level.
    fn skip(&mut self, to_else: bool) {
        let mut level = 0;
        while let Some(byte) = self.next() {
            if byte != b'%' {
                continue;
            }
            match self.next() {
                Some(b'?') => level += 1,
                Some(b';') if level == 0 => return,
                Some(b';') => level -= 1,
                Some(b'e') if level == 0 && to_else => return,
                _ => {}
            }
        }
    }

    /// `%d` and its like, `byte` being what follows the percent sign.
    fn number(&mut self, byte: u8) {
        let mut format = Format::default();
        let mut byte = Some(byte);
        // Behind a colon, a minus and a plus sign are flags; without one they would be operators.
        if byte == Some(b':') {
            byte = self.next();
        }
        loop {
            match byte {
                Some(b'-') => format.left = true,
                Some(b'+') => format.plus = true,
                Some(b'#') => format.alternate = true,
                Some(b' ') => format.blank = true,
                Some(b'0') => format.zero = true,
                _ => break,
            }
            byte = self.next();
        }
        format.width = self.digits(&mut byte).unwrap_or(0);
        if byte == Some(b'.') {
            byte = self.next();
            format.precision = Some(self.digits(&mut byte).unwrap_or(0));
        }
        match byte {
            Some(kind @ (b'd' | b'o' | b'x' | b'X')) => {
                let value = self.pop();
                self.out.extend(format.print(value, kind));
            }
            // A number is no string.
            Some(b's') => {
                self.pop();
                self.out.extend(format.padded(String::new()).bytes());
            }
            _ => {}
        }
    }

    fn digits(&mut self, byte: &mut Option<u8>) -> Option<usize> {
        let mut value = None;
        while let Some(digit @ b'0'..=b'9') = *byte {
            let digit = usize::from(digit - b'0');
            value = Some((value.unwrap_or(0) * 10 + digit).min(WIDEST));
            *byte = self.next();
        }
        value
    }
}

impl Format {
    fn padded(&self, text: String) -> String {
        let width = self.width;
        if self.left {
            format!("{text:<width$}")
        } else {
            format!("{text:>width$}")
        }
    }

    /// As C's `printf`.
    fn print(&self, value: i32, kind: u8) -> Vec<u8> {
        let mut digits = match kind {
            b'o' => format!("{value:o}"),
            b'x' => format!("{value:x}"),
            b'X' => format!("{value:X}"),
            _ => value.unsigned_abs().to_string(),
        };
        if self.precision == Some(0) && value == 0 {
            digits.clear();
        }
        let least = self.precision.unwrap_or(0);
        digits.insert_str(0, &"0".repeat(least.saturating_sub(digits.len())));
        let sign = match kind {
            b'd' if value < 0 => "-",
            b'd' if self.plus => "+",
            b'd' if self.blank => " ",
            b'x' if self.alternate && value != 0 => "0x",
            b'X' if self.alternate && value != 0 => "0X",
            b'o' if self.alternate && !digits.starts_with('0') => "0",
            _ => "",
        };
        if self.zero && !self.left && self.precision.is_none() {
            let zeros = self.width.saturating_sub(digits.len() + sign.len());
            digits.insert_str(0, &"0".repeat(zeros));
        }
        self.padded(format!("{sign}{digits}")).into_bytes()
    }
}

/// `string` without its pauses (`$<Milliseconds>`): no terminal of a known speed needs them.
pub(in crate::otp_nifs) fn without_pauses(string: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(string.len());
    let mut rest = string;
    while let [first, behind @ ..] = rest {
        rest = behind;
        if let (b'$', Some(pause)) = (first, behind.strip_prefix(b"<"))
            && let Some(after) = after_pause(pause)
        {
            rest = after;
            continue;
        }
        out.push(*first);
        // What follows a dollar sign that begins no pause is sent as it is.
        if let (b'$', [next, after @ ..]) = (first, behind) {
            out.push(*next);
            rest = after;
        }
    }
    out
}

/// What is behind `Digits[.Digits][*/]>`.
fn after_pause(text: &[u8]) -> Option<&[u8]> {
    let first = text.first()?;
    if !first.is_ascii_digit() && *first != b'.' {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'>')?;
    let is_pause = |byte: &u8| byte.is_ascii_digit() || b".*/".contains(byte);
    let stop = text.iter().position(|byte| !is_pause(byte))?;
    // What stands in the way of the end is left out in its place.
    Some(&text[stop.min(end) + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(string: &str, parameters: &[i64], expected: &str) {
        let mut all = [0; PARAMETERS];
        all[..parameters.len()].copy_from_slice(parameters);
        let text = String::from_utf8(tparm(string.as_bytes(), all)).expect("a text");
        assert_eq!(text, expected, "{string}");
    }

    #[test]
    fn parameters_are_put_in() {
        check("\x1b[%i%p1%d;%p2%dH", &[4, 9], "\x1b[5;10H");
        check(
            "%p1%02d|%p1%:-4d|%p1%:+d|%p1%.3d|%p1%x|%p1%#o",
            &[9],
            "09|9   |+9|009|9|011",
        );
        check("%p1%c%%%p2%c", &[65, 66], "A%B");
        check("%d-%d", &[1, 2], "1-2");
        check("%i%d-%d", &[1, 2], "3-2");
        check("%{7}%{2}%/%d%{7}%{2}%m%d%{1}%{0}%/%d", &[], "310");
        check("%'a'%c%p1%Pz%gz%d", &[12], "a12");
        check("%p1%!%d%p1%~%d", &[0], "1-1");
    }

    #[test]
    fn conditions_choose() {
        let setaf = "\x1b[%?%p1%{8}%<%t3%p1%d%e%p1%{16}%<%t9%p1%{8}%-%d%e38;5;%p1%d%;m";
        check(setaf, &[3], "\x1b[33m");
        check(setaf, &[11], "\x1b[93m");
        check(setaf, &[200], "\x1b[38;5;200m");
        check("%?%p1%t%?%p2%tboth%eone%;%enone%;.", &[1, 1], "both.");
        check("%?%p1%t%?%p2%tboth%eone%;%enone%;.", &[1, 0], "one.");
        check("%?%p1%t%?%p2%tboth%eone%;%enone%;.", &[0, 1], "none.");
    }

    #[test]
    fn damaged_strings_end() {
        for string in [
            "%", "%p", "%'", "%{1", "%?%p1%t", "%:", "%5", "%5.", "%P", "%d%d%d",
        ] {
            let _ = tparm(string.as_bytes(), [i64::MAX; PARAMETERS]);
        }
    }

    #[test]
    fn pauses_are_left_out() {
        let check = |string: &str, expected: &str| {
            let sent = without_pauses(string.as_bytes());
            assert_eq!(String::from_utf8(sent).expect("a text"), expected);
        };
        check("\x1b[?5h$<100/>\x1b[?5l", "\x1b[?5h\x1b[?5l");
        check("a$<5.5*>b$c$<x>$<", "ab$c$<x>$<");
        check("$$<1>", "$$<1>");
    }
}
