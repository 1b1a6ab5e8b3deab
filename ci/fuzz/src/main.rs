//! `beamline-fuzz TARGET FILE...`: has the reader read these files, such as a test has left. `beamline-fuzz --list`:
//! the readers.

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next();
    if target.as_deref() == Some("--list") {
        for target in &beamline_fuzz::TARGETS {
            println!("{}", target.name);
        }
        return std::process::ExitCode::SUCCESS;
    }
    let Some(target) = target.and_then(|name| beamline_fuzz::Target::of(&name)) else {
        let names = beamline_fuzz::TARGETS.map(|target| target.name);
        eprintln!(
            "beamline-fuzz TARGET FILE...: TARGET is {}",
            names.join(", ")
        );
        return std::process::ExitCode::from(2);
    };
    for path in arguments {
        match std::fs::read(&path) {
            Ok(bytes) => (target.read)(&bytes),
            Err(error) => {
                eprintln!("{path}: {error}");
                return std::process::ExitCode::FAILURE;
            }
        }
    }
    std::process::ExitCode::SUCCESS
}
