//! Failures of simulations and replays as failures of a command.

use blockyard_answer::certainty::NoAnswer;
use blockyard_sim::replay::ReplayError;
use blockyard_sim::simulate::SimulationError;

use crate::message::Failure;

impl From<NoAnswer<Self>> for Failure {
    fn from(error: NoAnswer<Self>) -> Self {
        match error {
            NoAnswer::Simulation(error) => error.into(),
            NoAnswer::Goal(text, error) => Self::Input(format!("--goal {text}: {error}")),
            NoAnswer::Watch(failure) => failure,
        }
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Self {
        match error {
            SimulationError::Failed { .. } | SimulationError::Log(_) => {
                Self::Run(error.to_string())
            }
            _ => Self::Input(error.to_string()),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        Self::Input(error.to_string())
    }
}
