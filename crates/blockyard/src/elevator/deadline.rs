//! mq-deadline.
