//! The flags whose values change what processes and connections begin with, and for how long a halt waits: `+h...`, `+pad`,
//! `+zdbbl`, `+zhft`. Source: `erl_start()` in `erl_init.c`, OTP 29.

use super::StartError;
use crate::dist::set_busy_limit;
use crate::heap::next_heap_size;
use crate::process::{self, MaxHeap};
use crate::sys::halt;

/// What takes the value of a flag. Error: what is wrong with it, to be followed by it.
type Take = fn(&str) -> Result<(), &'static str>;

/// The flags, each before those that begin it.
const FLAGS: &[(&str, Take)] = &[
    ("-hms", min_heap),
    ("-hmbs", min_bin_vheap),
    ("-hmaxk", |text| {
        max_heap(|max| &mut max.kill, text).ok_or("bad max heap kill")
    }),
    ("-hmaxel", |text| {
        max_heap(|max| &mut max.error_logger, text).ok_or("bad max heap error logger")
    }),
    ("-hmaxib", |text| {
        max_heap(|max| &mut max.include_shared_binaries, text).ok_or("bad max heap include bins")
    }),
    ("-hmax", max_heap_words),
    ("-hmqd", queue_data),
    ("-pad", async_dist),
    ("-zdbbl", busy_limit),
    ("-zhft", halt_flush_limit),
];

/// Takes the value of `flag`, attached to it or the `next` argument. `false` where it is another flag.
///
/// # Errors
/// The value is none for this flag.
pub(super) fn take<'a>(flag: &'a str, next: impl FnOnce() -> &'a str) -> Result<bool, StartError> {
    let found = FLAGS
        .iter()
        .find_map(|(name, take)| Some((take, flag.strip_prefix(name)?)));
    let Some((take, attached)) = found else {
        return Ok(false);
    };
    let text = match attached {
        "" => next(),
        attached => attached,
    };
    take(text).map_err(|what| StartError(format!("{what} {text}")))?;
    Ok(true)
}

fn words(text: &str) -> Result<usize, &'static str> {
    let words = text.parse().ok().filter(|words| *words > 0);
    Ok(next_heap_size(words.ok_or("bad heap size")?, false))
}

fn min_heap(text: &str) -> Result<(), &'static str> {
    process::set_min_heap_words(words(text)?);
    Ok(())
}

fn min_bin_vheap(text: &str) -> Result<(), &'static str> {
    process::set_min_bin_vheap_words(words(text)?);
    Ok(())
}

fn max_heap_words(text: &str) -> Result<(), &'static str> {
    let words = text.parse().map_err(|_| "bad max heap size")?;
    MaxHeap::set_of_system(MaxHeap {
        words,
        ..MaxHeap::of_system()
    });
    Ok(())
}

/// Sets one of the booleans of `max_heap_size`. `None` where the text is no boolean.
fn max_heap(field: fn(&mut MaxHeap) -> &mut bool, text: &str) -> Option<()> {
    let mut max = MaxHeap::of_system();
    *field(&mut max) = text.parse().ok()?;
    MaxHeap::set_of_system(max);
    Some(())
}

fn queue_data(text: &str) -> Result<(), &'static str> {
    let is_off_heap = match text {
        "on_heap" => false,
        "off_heap" => true,
        _ => return Err("Invalid message_queue_data flag:"),
    };
    process::set_off_heap_messages_default(is_off_heap);
    Ok(())
}

fn async_dist(text: &str) -> Result<(), &'static str> {
    let is_async = text.parse().map_err(|_| "bad async dist value")?;
    process::set_async_dist_default(is_async);
    Ok(())
}

/// Bytes that a connection to another node holds before senders wait, given in kilobytes.
fn busy_limit(text: &str) -> Result<(), &'static str> {
    let kilobytes = text.parse().ok().filter(|n| (1..=2_097_151).contains(n));
    let kilobytes: usize = kilobytes.ok_or("Invalid dist_buf_busy_limit:")?;
    set_busy_limit(kilobytes * 1024);
    Ok(())
}

/// Milliseconds for which a halt waits for what is left to do.
fn halt_flush_limit(text: &str) -> Result<(), &'static str> {
    let limit = match text {
        "infinity" => None,
        _ => {
            let milliseconds = text.parse().ok().filter(|n| *n <= i32::MAX as u32);
            Some(milliseconds.ok_or("Invalid halt flush timeout")?)
        }
    };
    halt::set_flush_limit(limit);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_told_apart_and_bad_values_are_refused() {
        let took = |flag, next| take(flag, || next).map_err(|StartError(text)| text);
        assert_eq!(took("-hmqdon_heap", "x"), Ok(true));
        assert_eq!(took("-hmqd", "on_heap"), Ok(true));
        assert_eq!(took("-zdntgc", "1"), Ok(false));
        for (flag, value, error) in [
            ("-hms", "0", "bad heap size 0"),
            ("-hmbs", "x", "bad heap size x"),
            ("-hmax", "-1", "bad max heap size -1"),
            ("-hmaxk", "7", "bad max heap kill 7"),
            ("-hmqd", "heap", "Invalid message_queue_data flag: heap"),
            ("-pad", "", "bad async dist value "),
            ("-zdbbl", "0", "Invalid dist_buf_busy_limit: 0"),
            ("-zhft", "-1", "Invalid halt flush timeout -1"),
        ] {
            assert_eq!(took(flag, value), Err(error.to_owned()), "{flag}");
        }
    }
}
