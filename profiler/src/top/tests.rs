use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::tests::second;
use super::*;

/// The screen of 80 columns and 24 lines after these keys, without blank lines and blanks at the end of lines.
fn shown(keys: &[KeyCode]) -> Vec<String> {
    let mut model = second();
    let view = model.view(1_000_000_000);
    let mut screen = Screen::default();
    for code in keys {
        screen.key(KeyEvent::new(*code, KeyModifiers::NONE), &view, &model);
    }
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("it is in memory");
    let drawn = terminal.draw(|frame| draw(frame, &mut screen, "node, 100 Hz", &view));
    drawn.expect("it is in memory");
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(80);
    let lines = lines.map(|line| {
        let text: String = line.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_screen_shows_functions_processes_and_schedulers() {
    let functions = [
        "node, 100 Hz",
        "70 samples in 1.000 s",
        "[Functions]  Processes   Schedulers    by own",
        "  OWN         TOTAL       FUNCTION",
        " 42.9 ±11.3  85.7 ±8.2   m:f/1",
        " 28.6 ±10.4  28.6 ±10.4  erlang:md5/1",
        " 14.3 ±8.2   14.3 ±8.2   [runtime] schedule",
        " 14.3 ±8.2   14.3 ±8.2   m:g/0",
        "  0.0 ±2.6   57.1 ±11.3  m:run/0",
        "Tab next table  s sort  / filter  Enter callers, callees  p pause  q quit",
    ];
    assert_eq!(shown(&[]), functions);
    let processes = shown(&[KeyCode::Tab]);
    assert_eq!(
        processes[3..6],
        [
            "SHARE        PROCESS                          MOST OFTEN IN",
            " 57.1 ±11.3  <0.10.0>                         m:f/1",
            " 28.6 ±10.4  <0.11.0>                         erlang:md5/1",
        ]
    );
    let schedulers = shown(&[KeyCode::Tab, KeyCode::Tab]);
    assert_eq!(
        schedulers[3..7],
        [
            "THREAD           ERLANG     BIF LIBRARY COLLECT RUNTIME    IDLE  (% of time)",
            "scheduler 1        40.0     0.0     0.0     0.0     0.0    60.0",
            "scheduler 2         0.0    15.0     5.0     0.0    10.0    70.0",
            "dirty CPU 1         0.0     0.0     0.0     0.0     0.0   100.0",
        ]
    );
}

#[test]
fn what_is_printed_has_all_tables() {
    let view = second().view(1_000_000_000);
    let text = text("node", &view);
    for part in ["m:f/1", "<0.10.0>", "scheduler 2"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= COLUMNS),
        "{text}"
    );
    let watched = Watched {
        pid: 7,
        name: None,
        otp: "29".into(),
        how: "test",
        rate_hz: 100,
    };
    let (watched, view) = (&watched, &view);
    let json = serde_json::to_value(Printed { watched, view }).expect("it is JSON");
    assert_eq!(json["pid"], 7);
    assert_eq!(json["functions"][0]["name"], "m:f/1");
    assert_eq!(json["functions"][0]["total"]["samples"], 60);
    assert_eq!(json["schedulers"][1]["does"]["bif"], 15.0);
}
