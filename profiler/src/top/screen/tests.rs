use super::super::model::tests::second;
use super::*;

const S: u64 = 1_000_000_000;

fn press(screen: &mut Screen, code: KeyCode, view: &View, model: &Model) -> bool {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE), view, model)
}

/// The rows of the screen after these keys.
fn rows_after(keys: &[KeyCode]) -> Vec<String> {
    let mut model = second();
    let view = model.view(S);
    let mut screen = Screen::default();
    for code in keys {
        assert!(!press(&mut screen, *code, &view, &model), "{code:?}");
    }
    screen.rows(&view).1
}

fn names(rows: &[String]) -> Vec<&str> {
    let names = rows
        .iter()
        .map(|row| row.rsplit("  ").next().unwrap_or(row));
    names.collect()
}

#[test]
fn functions_are_sorted_and_filtered() {
    use KeyCode::{Char, Enter, Esc};
    let own = rows_after(&[]);
    assert_eq!(names(&own)[..2], ["m:f/1", "erlang:md5/1"]);
    assert!(own[0].starts_with(" 42.9 ±11.3"), "{}", own[0]);
    let total = rows_after(&[Char('s')]);
    assert_eq!(names(&total)[..2], ["m:f/1", "m:run/0"]);
    let by_name = rows_after(&[Char('s'), Char('s')]);
    assert_eq!(names(&by_name)[0], "[runtime] schedule");
    let filtered = [Char('/'), Char('M'), Char('D'), Enter];
    assert_eq!(names(&rows_after(&filtered)), ["erlang:md5/1"]);
    // In the filter, the keys of the screen are letters.
    assert!(rows_after(&[Char('/'), Char('q')]).is_empty());
    let cleared = [Char('/'), Char('q'), Enter, Esc];
    assert_eq!(rows_after(&cleared).len(), 5);
}

#[test]
fn a_function_leads_to_its_callers_and_back() {
    use KeyCode::{Down, Enter, Esc};
    let drilled = rows_after(&[Down, Down, Down, Down, Enter]);
    let expect = ["called by", "100.0 ±4.4   (nobody)", "newest, or calls"];
    assert_eq!(drilled[..3], expect);
    assert_eq!(names(&drilled)[3], "m:f/1");
    assert_eq!(rows_after(&[Enter, Esc]), rows_after(&[]));
}

#[test]
fn keys_end_and_pause() {
    let mut model = second();
    let view = model.view(S);
    let mut screen = Screen::default();
    assert!(press(&mut screen, KeyCode::Char('q'), &view, &model));
    assert!(!press(&mut screen, KeyCode::Char('p'), &view, &model));
    assert!(screen.is_paused);
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    // Also while a filter is typed.
    press(&mut screen, KeyCode::Char('/'), &view, &model);
    assert!(screen.key(control_c, &view, &model));
}

#[test]
fn the_selection_stays_on_the_screen() {
    let mut model = second();
    let view = model.view(S);
    let mut screen = Screen::default();
    for _ in 0..50 {
        press(&mut screen, KeyCode::Down, &view, &model);
    }
    // Two rows have room: the last one is selected.
    let lines = screen.lines("head", &view, (80, 7));
    assert_eq!(lines.len(), 7);
    let selected = lines.iter().filter(|of| of.look == LineLook::Selected);
    let selected: Vec<_> = selected.map(|of| of.text.as_str()).collect();
    assert_eq!(names(&[selected[0].to_owned()]), ["m:run/0"]);
    assert_eq!(selected.len(), 1);
}

#[test]
fn no_line_is_wider_than_the_screen() {
    let mut model = second();
    let view = model.view(S);
    for table in Table::ALL {
        let mut screen = Screen {
            table,
            ..Screen::default()
        };
        for size in [(80, 24), (20, 5), (1, 1), (0, 0)] {
            for line in screen.lines("a long head", &view, size) {
                assert!(line.text.chars().count() <= size.0, "{line:?}");
            }
        }
        let (heading, rows) = screen.rows(&view);
        let all = rows.iter().chain([&heading]);
        let widest = all.map(|row| row.chars().count()).max();
        assert!(widest <= Some(COLUMNS), "{table:?}");
    }
}
