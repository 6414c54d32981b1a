//! Trust: calibration and the reversibility drill, as workflows.
//!
//! [`calibrate`] updates the instincts from people's resolutions. [`drill`] tests every night that each class of change
//! can be undone to the byte.

pub(crate) mod calibrate;
pub(crate) mod drill;
