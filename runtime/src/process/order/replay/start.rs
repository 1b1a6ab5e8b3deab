//! Begins a replay: the run is read early, and followed once all that is no part of it has been done.

use beamline_orders::Request;
use beamline_settings::variable::Variable as _;

use super::{PLAN, Plan, identities, plan, stop, turns, watch};
use crate::process::order;

/// Reads the run that the environment asks to follow, if it does and no emulator of the command has begun to. It comes before
/// anything is in the table of processes, which leaves room for the recorded pids.
///
/// # Errors
/// One line when the request or its file cannot be understood.
pub(crate) fn read() -> Result<(), String> {
    let Some(request) = Request::from_environment()? else {
        return Ok(());
    };
    if !request.claim()? {
        return Ok(());
    }
    let trace = request.trace()?;
    identities::check(&trace).map_err(|error| format!("{}: {error}", request.file.display()))?;
    let plan = Plan {
        has_deliveries: trace.has_deliveries(),
        ..Plan::new(trace.with_deliveries(), request.goes_on, request.stop)
    };
    let _ = PLAN.set(plan);
    Ok(())
}

/// Follows the run that was read, if one was: what runs from here on is part of it.
pub(crate) fn follow() {
    let Some(plan) = plan() else { return };
    if plan.stop.is_some() {
        stop::begin();
    }
    if plan.trace.has_signals() {
        turns::wait_for_signals();
    }
    order::begin_following();
    watch::start();
}
