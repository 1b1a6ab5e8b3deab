//! Finds where in a pattern an error is. OTP 29 has PCRE2 10.47, which points behind what is at fault. The library that
//! is linked is 10.46 and points at it, or at what it was part of. The numbers are those of `pcre2.h`.

/// A closing parenthesis is missing.
const MISSING_PARENTHESIS: i32 = 114;
/// The end of a group's number is missing. 10.46 has neither the number nor its text.
const UNENDED_NUMBER: i32 = 219;
/// The text of [`UNENDED_NUMBER`].
const UNENDED_NUMBER_TEXT: &str = "syntax error in subpattern number (missing terminator?)";

/// The text of an error that only the newer library has.
pub(super) fn newer_text(number: i32) -> Option<&'static str> {
    (number == UNENDED_NUMBER).then_some(UNENDED_NUMBER_TEXT)
}

/// The error and its offset as the newer library gives them.
pub(super) fn newer(number: i32, at: usize, pattern: &[u8], utf: bool) -> (i32, usize) {
    let p = Pattern { pattern, utf };
    let next = p.behind(at);
    let at = match number {
        // A character or an item at which it all ends.
        103 | 107 | 108 | 109 | 122 | 141 | 144 | 168 | 182 | 194 => next,
        // The older library goes back by one byte of the character, the newer one stays behind it.
        111 => (at + 1).min(pattern.len()),
        164 | 167 => return p.behind_digit(number, at),
        112 | 113 => p.behind_class(at),
        115 if p.is_escaped_number(at) => next,
        120 | 186 => 0,
        129 if p.before(at).ends_with(b"(?") && p.byte(at) == Some(b'+') => {
            return p.number_of_call(at + 1);
        }
        128 if p.before(at).ends_with(b"(?") => next,
        137 if p.before(at).ends_with(b"\\N") && p.byte(at) == Some(b'{') => next,
        142 if p.is_call_by_name(at) => return (MISSING_PARENTHESIS, at),
        157 => return p.number_after_g(at),
        179 if !p.before(at).ends_with(b">") && !p.before(at).ends_with(b">=") => next,
        193 => p.behind_code_point(at),
        195 if at == pattern.len() => return (MISSING_PARENTHESIS, at),
        195 if p.byte(at) != Some(b':') => next,
        _ => at,
    };
    (number, at)
}

struct Pattern<'a> {
    pattern: &'a [u8],
    utf: bool,
}

impl<'a> Pattern<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.pattern.get(at).copied()
    }

    fn before(&self, at: usize) -> &'a [u8] {
        &self.pattern[..at.min(self.pattern.len())]
    }

    /// The first place from `at` on whose byte is not of this kind.
    fn skip(&self, at: usize, is: impl Fn(u8) -> bool) -> usize {
        let rest = self.pattern.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| is(**byte)).count()
    }

    /// The place behind the character at `at`, if there is one.
    fn behind(&self, at: usize) -> usize {
        match self.byte(at) {
            None => at,
            Some(_) if self.utf => self.skip(at + 1, |byte| byte & 0xc0 == 0x80),
            Some(_) => at + 1,
        }
    }

    /// Behind `[:name:]`, which begins at `at`.
    fn behind_class(&self, at: usize) -> usize {
        let Some(mark) = self.byte(at + 1) else {
            return at;
        };
        let rest = self.pattern.get(at + 2..).unwrap_or_default();
        let end = rest.windows(2).position(|pair| pair == [mark, b']']);
        end.map_or(at, |end| at + 2 + end + 2)
    }

    /// Is what ends at `at` a reference by number that a backslash begins?
    fn is_escaped_number(&self, at: usize) -> bool {
        match self.byte(at) {
            Some(b'}' | b'>' | b'\'') => true,
            Some(b'0'..=b'9') => {
                let mut head = self.before(at);
                while let [rest @ .., b'0'..=b'9' | b'+' | b'-'] = head {
                    head = rest;
                }
                head.ends_with(b"\\") || head.ends_with(b"\\g")
            }
            _ => false,
        }
    }

    /// Does a name end at `at` that `(?&` or `(?P>` begins?
    fn is_call_by_name(&self, at: usize) -> bool {
        let head = self.before(at);
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte >= 0x80;
        let name = head.iter().rev().take_while(is_name).count();
        let head = &head[..head.len() - name];
        name > 0 && (head.ends_with(b"(?&") || head.ends_with(b"(?P>"))
    }

    /// `\g` without a group: where its number has no end, that is what is wrong.
    fn number_after_g(&self, at: usize) -> (i32, usize) {
        let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
        let start = self.skip(at, |byte| b"g{<'".contains(&byte) || is_blank(byte));
        let digits = self.skip(start, |byte| byte == b'+' || byte == b'-');
        let end = self.skip(digits, |byte| byte.is_ascii_digit());
        if end == digits || start == at {
            return (157, at);
        }
        (UNENDED_NUMBER, self.skip(end, is_blank))
    }

    /// Behind what is no digit of `\x{` or `\o{`. Where the pattern has ended, the older library is at its last
    /// character.
    fn behind_digit(&self, number: i32, at: usize) -> (i32, usize) {
        let at_end = self.behind(at) == self.pattern.len()
            && self.byte(at).is_some_and(|byte| {
                let radix = if number == 164 { 8 } else { 16 };
                char::from(byte).is_digit(radix) || byte == b' ' || byte == b'\t'
            });
        if at_end {
            (number, self.pattern.len() + 1)
        } else {
            (number, self.behind(at))
        }
    }

    /// `(?+` without a number, `at` being behind the plus sign.
    fn number_of_call(&self, at: usize) -> (i32, usize) {
        match self.byte(at) {
            None => (MISSING_PARENTHESIS, at),
            Some(_) => (129, self.behind(at)),
        }
    }

    /// Behind the hexadecimal digits of `\N{U+`, whose `N` is before `at`.
    fn behind_code_point(&self, at: usize) -> usize {
        let digits = self.skip(at, |byte| b"{U+".contains(&byte));
        let end = self.skip(digits, |byte| byte.is_ascii_hexdigit());
        let end = self.skip(end, |byte| byte == b' ' || byte == b'\t');
        end + usize::from(self.byte(end) == Some(b'}'))
    }
}
