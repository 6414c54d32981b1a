//! Trust: calibration, the reversibility drill and the ceilings that people set, as workflows.
//!
//! [`calibrate`] updates the instincts from people's resolutions. [`drill`] tests every night that each class of change
//! can be undone to the byte. [`set_ceiling`] lets a sender act, or takes that back.

pub(crate) mod calibrate;
pub(crate) mod drill;
pub(crate) mod set_ceiling;
