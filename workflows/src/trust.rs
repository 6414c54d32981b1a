//! Trust: calibration and the reversibility drill, as workflows.
//!
//! [`calibrate`] brings instincts in line with what people resolved, [`drill`] shows every night that each class of change
//! can be undone to the byte.

pub(crate) mod calibrate;
pub(crate) mod drill;
