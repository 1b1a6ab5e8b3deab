//! Flags of OTP's emulator whose value is the next argument. Source: `erlexec.c`, OTP 29.

/// Their names, without the sign in front.
const WITH_VALUE: &[&str] = &[
    "a", "A", "C", "e", "i", "n", "P", "Q", "t", "T", "R", "W", "K", "IOt", "IOp", "IOPt", "IOPp",
    "IOs", "S", "SP", "SDcpu", "SDPcpu", "SDio", "hms", "hmbs", "hpds", "hmax", "hmaxk", "hmaxel",
    "hmaxib", "hmqd", "h", "rg", "sbt", "sbwtdcpu", "sbwtdio", "sbwt", "scl", "sct", "secio",
    "sfwi", "stbt", "swct", "swtdcpu", "swtdio", "swt", "sws", "sss", "sssdcpu", "sssdio", "spp",
    "sub", "pc", "pad", "zdbbl", "zdntgc", "zebwt", "zosrl", "zhft", "Mea", "Mumadtn", "Mummc",
    "Muycs", "Musac", "Mim", "Mis", "Mlpm", "Mdai", "MIscs", "MXscs", "MMamcbf", "MMrmcbf",
    "MMmcs", "MMscs", "MMscrfsd", "MMsco", "MMscrpm", "MMlp", "MYe", "MYm", "MYtp", "MYtt",
];

/// Those whose value may be missing, and what it can be.
const WITH_OPTIONAL_VALUE: &[(&str, &[&str])] =
    &[("B", &["i", "c", "d"]), ("c", &["true", "false"])];

/// The letters of the allocators in `M<letter>`, and of all of them (`u`).
const ALLOCATORS: &str = "uBIDEFHLRSTZ";

/// What follows the letter of an allocator.
const OF_ALLOCATORS: &[&str] = &[
    "as", "asbcst", "atags", "acul", "acnl", "acfml", "acful", "cp", "e", "t", "lmbcs", "mbcgs",
    "mbsd", "mmbcs", "mmmbc", "mmsbc", "msbclt", "ramv", "rmbcmt", "rsbcmt", "rsbcst", "sbct",
    "smbcs",
];

/// Is the value of the flag `name` (without the `+` or `-`) the next argument? A name with its value attached is another name.
pub fn takes_value(name: &str) -> bool {
    WITH_VALUE.contains(&name)
        || name.starts_with("Di")
        || name.starts_with('J')
        || of_allocator(name).is_some_and(|rest| OF_ALLOCATORS.contains(&rest))
}

/// Is the next argument the value of the flag `name` (without the `+` or `-`), whose value may be missing?
pub fn is_optional_value(name: &str, next: &str) -> bool {
    let mut flags = WITH_OPTIONAL_VALUE.iter();
    flags.any(|(flag, values)| *flag == name && values.contains(&next))
}

/// What follows `M` and an allocator's letter.
fn of_allocator(name: &str) -> Option<&str> {
    name.strip_prefix('M')?
        .strip_prefix(|letter| ALLOCATORS.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::{is_optional_value, takes_value};

    #[test]
    fn a_value_is_expected_behind_the_bare_name() {
        for name in [
            "MBas", "Mulmbcs", "MMmcs", "MYtt", "hms", "sbwt", "Dibpl", "JPperf", "zdbbl",
        ] {
            assert!(takes_value(name), "{name}");
        }
        for name in [
            "MBasaobf", "MXas", "MM", "M", "", "hms233", "B", "c", "d", "Bd", "sfoo",
        ] {
            assert!(!takes_value(name), "{name}");
        }
        assert!(is_optional_value("B", "i") && is_optional_value("c", "false"));
        assert!(!is_optional_value("B", "true") && !is_optional_value("Bi", "i"));
    }
}
