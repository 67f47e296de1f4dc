//! The random stream of the core, and fractions drawn from it.

pub use blockyard::prng::Prng;

/// Returns a number in [0, 1), a multiple of 2 to the power -53.
#[allow(clippy::float_arithmetic, reason = "both steps are exact")]
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
pub(super) fn unit(prng: &mut Prng) -> f64 {
    (prng.next() >> 11) as f64 / (1u64 << 53) as f64
}
