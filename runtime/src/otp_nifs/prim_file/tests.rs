//! Tests of `prim_file` on real files.

use crate::sys::chance::names::own_pid;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::*;

/// A directory of the test's own, removed at its end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("prim_file-{}-{name}", own_pid()));
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
    fn name<'p>(&self, p: &'p Process, name: &str) -> Term<'p> {
        let mut bytes = self.0.join(name).into_os_string().into_vec();
        bytes.push(0);
        p.binary(&bytes)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn call<'p>(result: BifResult<'p>) -> Term<'p> {
    result.ok().expect("no exception")
}

fn value<'p>(result: BifResult<'p>) -> Term<'p> {
    let tuple = call(result).as_tuple().expect("{ok, Value}");
    assert!(tuple.get(0) == am::ok, "{:?}", tuple.get(1).as_atom());
    tuple.get(1)
}

fn bytes<'p>(result: BifResult<'p>) -> Vec<u8> {
    value(result).as_binary().expect("a binary").to_vec()
}

#[track_caller]
fn assert_error<'p>(result: BifResult<'p>, reason: &str) {
    let tuple = call(result).as_tuple().expect("{error, Reason}");
    assert!(tuple.get(0) == am::error);
    assert_eq!(tuple.get(1).as_atom().unwrap().name(), reason);
}

#[track_caller]
fn assert_ok<'p>(result: BifResult<'p>) {
    let term = call(result);
    let reason = term.as_tuple().and_then(|t| t.get(1).as_atom());
    assert!(term == am::ok, "{reason:?}");
}

fn modes<'p>(p: &'p Process, names: &[&str]) -> Term<'p> {
    let atoms: Vec<_> = names.iter().map(|name| atom(name)).collect();
    p.list(&atoms)
}

fn n(value: i64) -> Term<'static> {
    Term::small(value)
}

#[test]
fn a_file_is_written_read_and_sought() {
    let (p, dir) = (&Process::new(233), Dir::new("rw"));
    let name = dir.name(p, "a");
    let file = value(open_nif_2(p, [name, modes(p, &["read", "write"])]));
    let iovec = p.list(&[p.binary(b"hello "), p.binary(b""), p.binary(b"world")]);
    assert_ok(write_nif_2(p, [file, iovec]));
    assert_eq!(
        value(seek_nif_3(p, [file, atom("bof"), n(4)])).as_small(),
        Some(4)
    );
    assert_eq!(bytes(read_nif_2(p, [file, n(3)])), b"o w");
    assert_eq!(bytes(pread_nif_3(p, [file, n(6), n(100)])), b"world");
    assert_ok(pwrite_nif_3(p, [file, n(0), p.list(&[p.binary(b"J")])]));
    assert_ok(truncate_nif_1(p, [file]));
    assert!(call(read_nif_2(p, [file, n(1)])).same(atom("eof")));
    assert_error(seek_nif_3(p, [file, atom("cur"), n(-100)]), "einval");
    assert_error(read_nif_2(p, [file, n(-1)]), "einval");
    assert!(read_nif_2(p, [file, atom("x")]).is_err());
    assert_ok(close_nif_1(p, [file]));
    assert_error(close_nif_1(p, [file]), "einval");
    assert_error(read_nif_2(p, [file, n(1)]), "einval");
    assert_eq!(bytes(read_file_nif_1(p, [name])), b"Jello w");
}

#[test]
fn a_long_iovec_is_written_in_parts() {
    let (p, dir) = (&Process::new(233), Dir::new("parts"));
    let name = dir.name(p, "a");
    let file = value(open_nif_2(p, [name, modes(p, &["write"])]));
    let pieces: Vec<_> = (0..100u8).map(|i| p.binary(&[i])).collect();
    let more = call(pwrite_nif_3(p, [file, n(0), p.list(&pieces)]));
    let more = more.as_tuple().expect("{continue, Written, Rest}");
    assert!(more.get(0).same(atom("continue")) && more.get(1).as_small() == Some(64));
    assert_ok(pwrite_nif_3(p, [file, more.get(1), more.get(2)]));
    let all: Vec<u8> = (0..100).collect();
    assert_eq!(bytes(read_file_nif_1(p, [name])), all);
}

#[test]
fn modes_say_how_a_file_is_opened() {
    let (p, dir) = (&Process::new(233), Dir::new("modes"));
    let name = dir.name(p, "a");
    assert_error(open_nif_2(p, [name, Term::NIL]), "enoent");
    value(open_nif_2(p, [name, modes(p, &["exclusive"])]));
    assert_error(open_nif_2(p, [name, modes(p, &["exclusive"])]), "eexist");
    assert_error(
        open_nif_2(p, [dir.name(p, ""), modes(p, &["read"])]),
        "eisdir",
    );
    value(open_nif_2(
        p,
        [dir.name(p, ""), modes(p, &["read", "directory"])],
    ));
    assert_error(open_nif_2(p, [name, modes(p, &["directory"])]), "enotdir");
    for text in [b"one".as_slice(), b"two"] {
        let file = value(open_nif_2(p, [name, modes(p, &["append"])]));
        assert_ok(write_nif_2(p, [file, p.list(&[p.binary(text)])]));
    }
    assert_eq!(bytes(read_file_nif_1(p, [name])), b"onetwo");
    assert_error(open_nif_2(p, [p.binary(b"no end"), Term::NIL]), "einval");
    assert_error(
        open_nif_2(p, [p.binary(b"in\0side\0"), Term::NIL]),
        "einval",
    );
    assert!(open_nif_2(p, [name, atom("read")]).is_err());
}

#[test]
fn directories_links_and_names() {
    let (p, dir) = (&Process::new(233), Dir::new("names"));
    let [sub, a, b] = ["sub", "sub/a", "sub/b"].map(|name| dir.name(p, name));
    assert_ok(make_dir_nif_1(p, [sub]));
    assert_error(make_dir_nif_1(p, [sub]), "eexist");
    value(open_nif_2(p, [a, modes(p, &["write"])]));
    assert_ok(make_soft_link_nif_2(p, [p.binary(b"a\0"), b]));
    assert_eq!(bytes(read_link_nif_1(p, [b])), b"a");
    assert_error(read_link_nif_1(p, [a]), "einval");
    let mut names: Vec<_> = value(list_dir_nif_1(p, [sub]))
        .list_iter()
        .map(|name| name.ok().unwrap().as_binary().unwrap().to_vec())
        .collect();
    names.sort();
    assert_eq!(names, [b"a", b"b"]);
    assert_error(del_dir_nif_1(p, [sub]), "eexist");
    assert_error(del_file_nif_1(p, [sub]), "eperm");
    assert_ok(del_file_nif_1(p, [b]));
    assert_ok(make_hard_link_nif_2(p, [a, b]));
    assert_ok(rename_nif_2(p, [a, dir.name(p, "c")]));
    assert_ok(del_file_nif_1(p, [b]));
    assert_ok(del_dir_nif_1(p, [sub]));
    assert_error(list_dir_nif_1(p, [sub]), "enoent");
}

#[test]
fn info_is_what_the_system_says() {
    let (p, dir) = (&Process::new(233), Dir::new("info"));
    let name = dir.name(p, "a");
    let file = value(open_nif_2(p, [name, modes(p, &["write"])]));
    assert_ok(write_nif_2(p, [file, p.list(&[p.binary(b"12345")])]));
    assert_ok(set_permissions_nif_2(p, [name, n(0o640)]));
    assert_ok(set_time_nif_4(
        p,
        [name, n(1_000_000_000), n(1_100_000_000), n(0)],
    ));
    let info = call(read_info_nif_2(p, [name, n(1)])).as_tuple().unwrap();
    let meta = std::fs::metadata(dir.0.join("a")).unwrap();
    assert_eq!(info.arity(), 14);
    assert!(info.get(0).same(atom("file_info")) && info.get(2).same(atom("regular")));
    let numbers = [1, 4, 5, 7, 8, 12, 13].map(|i| info.get(i).as_small().unwrap());
    let mode = i64::from(meta.mode());
    let (uid, gid) = (i64::from(meta.uid()), i64::from(meta.gid()));
    assert_eq!(
        numbers,
        [5, 1_000_000_000, 1_100_000_000, mode, 1, uid, gid]
    );
    assert_eq!(mode & 0o777, 0o640);
    let by_handle = call(read_handle_info_nif_1(p, [file])).as_tuple().unwrap();
    assert!((0..14).all(|i| info.get(i).same(by_handle.get(i)) || i == 3));
}

#[test]
fn a_block_is_read_through_its_pointer() {
    let (p, dir) = (&Process::new(233), Dir::new("ipread"));
    let name = dir.name(p, "a");
    let file = value(open_nif_2(p, [name, modes(p, &["read", "write"])]));
    let data = [0, 0, 0, 3, 0, 0, 0, 9, b'-', b'x', b'y', b'z', b'!'];
    assert_ok(write_nif_2(p, [file, p.list(&[p.binary(&data)])]));
    let block = value(ipread_s32bu_p32bu_nif_3(p, [file, n(0), n(1000)]));
    let block = block.as_tuple().unwrap();
    assert_eq!(
        (block.get(0).as_small(), block.get(1).as_small()),
        (Some(3), Some(9))
    );
    assert_eq!(block.get(2).as_binary().unwrap().to_vec(), b"xyz");
    let too_long = call(ipread_s32bu_p32bu_nif_3(p, [file, n(0), n(2)]));
    assert!(too_long.same(atom("eof")));
}

#[test]
fn a_file_is_closed_with_its_last_reference() {
    let dir = Dir::new("collected");
    let open_files = |path: &PathBuf| {
        std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter(|fd| {
                std::fs::read_link(fd.as_ref().unwrap().path()).is_ok_and(|to| to == *path)
            })
            .count()
    };
    let p = Process::new(233);
    value(open_nif_2(&p, [dir.name(&p, "a"), modes(&p, &["write"])]));
    assert_eq!(open_files(&dir.0.join("a")), 1);
    drop(p);
    assert_eq!(open_files(&dir.0.join("a")), 0);
}
