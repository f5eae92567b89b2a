//! What is said when a panic cannot be survived.

use std::io::Write;
use std::sync::Once;

/// What a program compiled with `panic = "abort"` is told.
const TEXT: &str = "greenroom: this program was compiled with `panic = \"abort\"`: a panic in any actor ends the whole process, \
     and no supervisor can restart it; remove `panic = \"abort\"` from the profile in Cargo.toml to let actors fail alone";

/// Says once, on the standard error, that panics end the process, if they do.
pub(crate) fn warn() {
    static ONCE: Once = Once::new();
    if cfg!(panic = "abort") {
        ONCE.call_once(|| {
            // Nobody else would hear it either.
            let _unsaid = writeln!(std::io::stderr(), "{TEXT}");
        });
    }
}
