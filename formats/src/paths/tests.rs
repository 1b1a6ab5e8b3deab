//! Paths against a model: the stack as it is, folded anew at each step.

use proptest::prelude::*;

use super::*;

/// A function, as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Function(u32),
    Cut(u32),
}

impl Frame for Of {
    fn cut_at(frames: u32) -> Of {
        Of::Cut(frames)
    }

    fn is_cut(self) -> bool {
        matches!(self, Of::Cut(_))
    }

    fn is_same_function(self, other: Of) -> bool {
        self == other
    }
}

fn of(function: u8) -> Of {
    Of::Function(function.into())
}

/// A path as text, the oldest function first: a letter each.
fn text(paths: &Paths<Of>, path: u32) -> String {
    let letter = |frame| match frame {
        Of::Function(function) => char::from(u8::try_from(function).expect("a letter")),
        Of::Cut(_) => '…',
    };
    let letters: Vec<char> = paths.path(path).map(letter).collect();
    letters.into_iter().rev().collect()
}

/// The path of calls that have not returned.
fn path_of(calls: &str) -> String {
    let mut paths = Paths::default();
    let mut at = ROOT;
    for function in calls.bytes() {
        at = paths.call(at, of(function));
    }
    text(&paths, at)
}

#[test]
fn recursion_folds_and_all_else_stays() {
    for (calls, expect) in [
        ("", ""),
        ("a", "a"),
        ("aaaa", "a"),
        ("abac", "abac"),
        ("abab", "ab"),
        ("ababab", "ab"),
        ("ababa", "aba"),
        ("xabcabcabcd", "xabcd"),
        ("xabaaba", "xaba"),
        ("abcbabcb", "abcb"),
        ("mfgmfhmf", "mfgmfhmf"),
        ("mfgmfhmfgmfh", "mfgmfh"),
    ] {
        assert_eq!(path_of(calls), expect, "{calls}");
    }
}

#[test]
fn paths_that_are_the_same_are_one() {
    let mut paths = Paths::default();
    let [a, b] = [of(b'a'), of(b'b')];
    let one = paths.call(ROOT, a);
    let two = paths.call(one, b);
    let three = paths.call(two, a);
    assert_eq!(paths.call(three, b), two);
    assert_eq!(paths.call(two, b), two);
    assert_eq!(paths.call(ROOT, a), one);
    assert_eq!(paths.path(three).collect::<Vec<_>>(), [a, b, a]);
    let all: Vec<_> = paths.iter().collect();
    assert_eq!(all, [(None, a), (Some(one), b), (Some(two), a)]);
    assert_eq!((paths.len(), paths.is_empty()), (3, false));
    assert_eq!((paths.last(two), paths.last(ROOT)), (Some(b), None));
}

#[test]
fn a_row_of_tail_calls_goes_back_to_its_function() {
    let steps = |text: &str| {
        let mut paths = Paths::default();
        let mut rows = Rows::default();
        for step in text.split(' ') {
            match step.as_bytes() {
                [b'-'] => rows.leave(1),
                [b'!', function] => rows.tail_call(&mut paths, of(*function)),
                [function] => rows.call(&mut paths, of(*function)),
                _ => unreachable!("a step is one letter"),
            }
        }
        (self::text(&paths, rows.current()), paths.len())
    };
    for (calls, expect) in [
        // A server's loop.
        ("s !l !h !l !t !l !h !l", ("sl", 4)),
        // The caller's frame is gone with it: both return at once.
        ("m f !g -", ("m", 3)),
        ("m f !g - h", ("mh", 4)),
        // A call is no part of the row that it was made from.
        ("a !b a", ("aba", 3)),
        ("a !b a !b", ("ab", 3)),
        ("a !b a !b !a", ("aba", 3)),
        // A call of the function that runs opens no row.
        ("w w !h !w", ("whw", 3)),
        ("w !h !w", ("w", 2)),
        ("w w !w", ("w", 1)),
        ("!w !h !w - !w", ("w", 2)),
    ] {
        assert_eq!(steps(calls), (expect.0.to_owned(), expect.1), "{calls}");
    }
}

#[test]
fn deep_paths_are_cut_and_never_counted_for_others() {
    let mut paths = Paths::default();
    let mut at = ROOT;
    for function in 0..FRAMES_MAX {
        at = paths.call(at, Of::Function(function));
    }
    let last_whole = at;
    assert_eq!(paths.len(), FRAMES_MAX as usize);
    let beyond = [7, 1_000, 7, 1_001].map(|function| {
        at = paths.call(at, Of::Function(function));
        at
    });
    assert_eq!((beyond[0], beyond[1] == beyond[3]), (beyond[2], false));
    for (path, function) in beyond.into_iter().zip([7, 1_000, 7, 1_001]) {
        let frames: Vec<Of> = paths.path(path).take(2).collect();
        assert_eq!(frames, [Of::Function(function), Of::Cut(FRAMES_MAX)]);
        assert_eq!(paths.path(path).count(), FRAMES_MAX as usize + 2);
    }
    assert_eq!(paths.call(last_whole, Of::Function(7)), beyond[0]);
}

#[test]
fn a_tree_with_very_many_paths_cuts_earlier() {
    let limits = [0, 1 << 16, 2 << 16, 9 << 16, u32::MAX].map(frames_max);
    assert_eq!(limits, [512, 256, 128, 1, 1]);
    let mut paths = Paths::default();
    let all = |number: u32| (0..40).map(move |bit| (bit % 20) * 2 + (number >> (bit % 20) & 1));
    for number in 0..1 << 17 {
        let mut at = ROOT;
        for function in all(number) {
            at = paths.call(at, Of::Function(function));
        }
        let cut = paths.path(at).find(|frame| frame.is_cut());
        assert!(cut.is_some() || paths.path(at).count() == 20, "{number}");
    }
    assert!(paths.len() < 700_000, "{}", paths.len());
}

/// What a path is, with no tree: functions, of which the newest period that repeats goes.
fn fold(mut path: Vec<u8>, function: u8) -> Vec<u8> {
    path.push(function);
    for period in 1..=path.len() / 2 {
        let at = path.len() - period;
        if path[at..] == path[at - period..at] {
            path.truncate(at);
            break;
        }
    }
    path
}

/// A row of the model: its path before, and what each of its calls led to.
struct Frames {
    below: Vec<u8>,
    paths: Vec<Vec<u8>>,
}

proptest! {
    /// Any sequence of calls, tail calls and ends of calls.
    #[test]
    fn paths_are_those_of_the_stack(steps in prop::collection::vec((0_u8..4, b'a'..b'f'), 0..200)) {
        let mut paths = Paths::default();
        let mut rows = Rows::default();
        let mut model: Vec<Frames> = vec![Frames { below: Vec::new(), paths: Vec::new() }];
        let mut now: Vec<u8> = Vec::new();
        for (what, function) in steps {
            match what {
                0 | 1 => rows.call(&mut paths, of(function)),
                2 => rows.tail_call(&mut paths, of(function)),
                _ => rows.leave(1),
            }
            if what < 2 {
                model.push(Frames { below: now.clone(), paths: Vec::new() });
            }
            let row = model.last_mut().expect("a row");
            let again = row.paths.iter().rposition(|path| path.last() == Some(&function));
            match (what, again) {
                (3, _) => {
                    let row = model.pop().expect("a row");
                    now = row.below;
                    if model.is_empty() {
                        model.push(Frames { below: Vec::new(), paths: Vec::new() });
                    }
                }
                (2, Some(at)) => {
                    row.paths.truncate(at + 1);
                    now = row.paths[at].clone();
                }
                _ if now.last() == Some(&function) => {}
                _ => {
                    now = fold(now, function);
                    row.paths.push(now.clone());
                }
            }
            let expect: String = now.iter().map(|function| char::from(*function)).collect();
            prop_assert_eq!(text(&paths, rows.current()), expect);
        }
    }

    /// No function is lost: what is on the stack is on its path.
    #[test]
    fn paths_have_all_functions_of_the_stack(calls in "[a-e]{0,120}") {
        let path = path_of(&calls);
        for function in calls.chars() {
            prop_assert!(path.contains(function), "{calls}: {path}");
        }
        prop_assert_eq!(path.chars().last(), calls.chars().last());
    }
}
