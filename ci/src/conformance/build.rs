//! Compiling OTP's suites.
//!
//! Sources are copied out of OTP's tree and compiled one module at a time, so that one that does not
//! compile costs itself alone. What is compiled already is kept while OTP's version and the
//! compiling command stay the same. What they have in C is compiled by `c_libraries.rs`.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use super::{Setup, Suite, c_libraries, listed, read};
use crate::paths;

/// Modules of `ci/conformance/src` that every suite needs.
const RUNNER: [&str; 6] = [
    "ctlite",
    "ctlite_nodes",
    "ct",
    "test_server",
    "ct_event",
    "ct_property_test",
];

/// Where suites look for Common Test's headers, below an include directory.
///
/// `-include_lib` tries the include directories before it asks for an application of that name.
const CT_HEADERS: &str = "common_test/include";
/// The folder of os_mon, for suites with other nodes.
pub(super) const OS_MON: &str = "os_mon";
/// As [`CT_HEADERS`], for EUnit's.
const EUNIT_HEADERS: &str = "eunit/include";

/// Compiles the runner, the suites' helpers and `suites` into `setup.dir`.
pub(super) fn build(setup: &Setup, source: &Path, suites: &[Suite]) -> Result<()> {
    reset_if_changed(setup, source)?;
    let out = setup.dir.join("src");
    fs::create_dir_all(&out)?;
    fs::create_dir_all(setup.dir.join("nopeer"))?;
    let ours = paths::workspace().join("ci/conformance/src");
    let mut modules = Vec::new();
    for name in RUNNER {
        copy(&ours.join(format!("{name}.erl")), &out)?;
        modules.push(name.to_owned());
    }
    fs::create_dir_all(out.join(CT_HEADERS))?;
    copy_headers(&ours.join("include"), &out.join(CT_HEADERS))?;
    // Packages of OTP that are there to run programs leave headers out.
    fs::create_dir_all(out.join(EUNIT_HEADERS))?;
    copy_headers(
        &source.join("lib").join(EUNIT_HEADERS),
        &out.join(EUNIT_HEADERS),
    )?;
    copy(&ours.join("nopeer/peer.erl"), &setup.dir.join("nopeer"))?;
    build_os_mon(setup, source, &ours)?;
    for (dir, name) in listed(&read("helpers.txt")?) {
        copy(&source.join(&dir).join(format!("{name}.erl")), &out)?;
        modules.push(name);
    }
    let mut dirs: Vec<_> = listed(&read("helpers.txt")?)
        .into_iter()
        .map(|(dir, _)| dir)
        .collect();
    let mut data = Vec::new();
    for suite in suites {
        copy(
            &source
                .join(&suite.dir)
                .join(format!("{}.erl", suite.module)),
            &out,
        )?;
        data.push(copy_data(setup, &source.join(&suite.dir), &suite.module)?);
        modules.push(suite.module.clone());
        dirs.push(suite.dir.clone());
    }
    // A suite may be another's helper.
    modules.sort_unstable();
    modules.dedup();
    dirs.dedup();
    for dir in &dirs {
        copy_headers(&source.join(dir), &out)?;
        copy_private_headers(source, dir, &out)?;
    }
    compile(setup, "nopeer", ".", "peer")?;
    compile_all(setup, &modules)?;
    c_libraries::build(setup, &data)
}

/// Compiles what suites with other nodes use of os_mon, into a folder of its own: other suites do more where they find it.
fn build_os_mon(setup: &Setup, source: &Path, ours: &Path) -> Result<()> {
    let (from, to) = (source.join("lib/os_mon"), setup.dir.join(OS_MON));
    fs::create_dir_all(&to)?;
    copy(&ours.join("os_mon.app"), &to)?;
    copy_headers(&from.join("include"), &to)?;
    for module in ["os_mon", "memsup"] {
        copy(&from.join("src").join(format!("{module}.erl")), &to)?;
        if !compile(setup, OS_MON, ".", module)? {
            bail!(
                "not compiled: {module}; see {}",
                setup.dir.join("build.log").display()
            );
        }
    }
    Ok(())
}

/// Copies a suite's folder of data and those that it takes files from; gives where the copy is, if there is one.
fn copy_data(setup: &Setup, source: &Path, module: &str) -> Result<PathBuf> {
    let data = format!("{module}_data");
    for name in c_libraries::neighbours(&source.join(&data))? {
        copy_tree(&source.join(&name), &setup.dir.join(&name))?;
    }
    let copy = setup.dir.join(&data);
    copy_tree(&source.join(&data), &copy)?;
    Ok(copy)
}

/// Empties the build folder when it was made from another OTP or by another command.
fn reset_if_changed(setup: &Setup, source: &Path) -> Result<()> {
    let version = fs::read_to_string(source.join("OTP_VERSION"))
        .with_context(|| format!("no OTP source in {}", source.display()))?;
    let made_by = format!("OTP {} by {}\n", version.trim(), setup.erlc.join(" "));
    let stamp = setup.dir.join("made_by");
    match fs::read_to_string(&stamp) {
        Ok(before) if before == made_by => return Ok(()),
        // Only what we have made is removed: the folder may be one that the user named.
        Ok(_) => {
            fs::remove_dir_all(&setup.dir)
                .with_context(|| format!("emptying {}", setup.dir.display()))?;
            fs::create_dir_all(&setup.dir)?;
        }
        Err(_) if fs::read_dir(&setup.dir)?.next().is_some() => {
            bail!(
                "{} is neither empty nor a build folder of suites",
                setup.dir.display()
            );
        }
        Err(_) => {}
    }
    Ok(fs::write(stamp, made_by)?)
}

fn compile_all(setup: &Setup, modules: &[String]) -> Result<()> {
    let waiting = Mutex::new(modules.iter());
    let failed = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let next = waiting.lock().expect("no thread panics with it").next();
            let Some(module) = next else { return Ok(()) };
            if !compile(setup, "src", "..", module)? {
                failed
                    .lock()
                    .expect("no thread panics with it")
                    .push(module.as_str());
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..setup.jobs).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a compiling thread panicked"))
    })?;
    let mut failed = failed.into_inner().expect("no thread panics with it");
    failed.sort_unstable();
    if !failed.is_empty() {
        bail!(
            "not compiled: {}; see {}",
            failed.join(", "),
            setup.dir.join("build.log").display()
        );
    }
    Ok(())
}

/// Compiles one module in the subdirectory `dir`, unless that is done. False: it does not compile.
fn compile(setup: &Setup, dir: &str, out: &str, module: &str) -> Result<bool> {
    let dir = setup.dir.join(dir);
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let beam = modified(&dir.join(out).join(format!("{module}.beam")));
    if beam.is_some() && beam >= modified(&dir.join(format!("{module}.erl"))) {
        return Ok(true);
    }
    let log = setup.dir.join("build.log");
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = setup.place.command(&dir, &setup.erlc)?;
    command.args([
        "-W0",
        "+nowarn_export_all",
        "+nowarn_missing_spec_documented",
    ]);
    command
        .args(["-I", ".", "-o", out])
        .arg(format!("{module}.erl"));
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let status = command
        .status()
        .with_context(|| format!("starting {}", setup.erlc.join(" ")))?;
    Ok(status.success())
}

/// Copies a file into a directory, unless the copy there is the same.
fn copy(file: &Path, into: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let copy = into.join(file.file_name().context("a file has a name")?);
    if fs::read(&copy).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(&copy, bytes).with_context(|| format!("writing {}", copy.display()))
}

/// Copies the headers in the source of the application that the suites of `dir` test: they include `ssl/src/ssl_api.hrl`,
/// which no installed OTP has.
fn copy_private_headers(source: &Path, dir: &str, into: &Path) -> Result<()> {
    let application = dir
        .strip_prefix("lib/")
        .and_then(|rest| rest.strip_suffix("/test"));
    let Some(application) = application else {
        return Ok(());
    };
    let headers = into.join(application).join("src");
    fs::create_dir_all(&headers)?;
    copy_headers(&source.join(dir).with_file_name("src"), &headers)
}

fn copy_headers(from: &Path, into: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "hrl") {
            copy(&path, into)?;
        }
    }
    Ok(())
}

/// Copies a directory of test data, if there is one; the copies can be written to.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() || to.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::io::copy(&mut File::open(entry.path())?, &mut File::create(&target)?)?;
        }
    }
    Ok(())
}
