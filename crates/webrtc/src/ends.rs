//! The two kinds of endpoints, each of which several programs can be.

use suiro_endpoint::{Context, Failure, Summary};
use suiro_scenario::{Job, WebrtcProgram, WebrtcPublisher, WebrtcViewer};

use crate::{chromium, pion, publish, view};

/// Runs a trial's job of a publisher: suiro's own, Chromium or pion.
///
/// # Errors
/// If it is not one, or as the program's own `run`.
pub fn run_publisher(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec = job.endpoint.spec.downcast::<WebrtcPublisher>();
    let spec = spec.ok_or("a job of a WebRTC publisher is that of one")?;
    match spec.program {
        WebrtcProgram::Suiro => publish::run_job(job, context),
        WebrtcProgram::Chromium => chromium::run_publisher(job, spec, context),
        WebrtcProgram::Pion => pion::run_job(job, context),
    }
}

/// Runs a trial's job of a viewer: suiro's own, or Chromium.
///
/// # Errors
/// If it is not one, or as the program's own `run`.
pub fn run_viewer(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec = job.endpoint.spec.downcast::<WebrtcViewer>();
    let spec = spec.ok_or("a job of a WebRTC viewer is that of one")?;
    match spec.program {
        WebrtcProgram::Suiro => view::run_job(job, context),
        WebrtcProgram::Chromium => chromium::run_viewer(job, spec, context),
        WebrtcProgram::Pion => Err("pion only publishes".into()),
    }
}
