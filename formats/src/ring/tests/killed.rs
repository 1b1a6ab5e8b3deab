//! Tests of recordings whose writers are killed.

use beamline_settings::random::Numbers;

use super::*;

/// Set for the process that is to be killed: the file it writes.
const VICTIM: &str = "BEAMLINE_RING_VICTIM";

/// Writes records without end, and after each its number to another file.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM).map(PathBuf::from) else {
        return;
    };
    let ring = create(&path, &options(1, 8, WhenFull::Overwrite));
    let log = File::create(path.with_extension("log")).expect("writable");
    let mut writer = ring.segment(0).expect("free");
    for at in 0_u64.. {
        number(&mut writer, at);
        if at % 64 == 0 {
            log.write_all_at(&(at + 1).to_le_bytes(), 0)
                .expect("writable");
        }
    }
}

#[test]
fn whoever_is_killed_leaves_whole_records() {
    let (_folder, path) = place();
    let this = std::env::current_exe().expect("it runs");
    let mut random = Numbers(2);
    for _ in 0..30 {
        let log = path.with_extension("log");
        let _ = fs::remove_file(&log);
        let mut child = Command::new(&this)
            .args(["--exact", "ring::tests::killed::victim"])
            .env(VICTIM, &path)
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let logged = |log: &Path| {
            let bytes = fs::read(log).ok()?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        while logged(&log).is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_micros(random.index(20_000) as u64));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let recording = open(&path);
        let numbers = numbers(&recording, 0);
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
        let logged = logged(&log).expect("it was there");
        assert!(
            last + 1 >= logged,
            "record {logged} was written, {last} is read"
        );
    }
}
