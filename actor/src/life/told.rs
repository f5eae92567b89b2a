//! Errors that nobody waited for.

use std::any::Any;
use std::fmt;

/// The error of a message that was told, not asked, for `#[on(error)]`.
pub struct ToldError {
    method: &'static str,
    text: Option<String>,
    error: Box<dyn Any>,
}

impl ToldError {
    pub(crate) fn new(method: &'static str, text: Option<String>, error: Box<dyn Any>) -> Self {
        Self {
            method,
            text,
            error,
        }
    }

    /// The method whose handler returned it.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The error itself, if it is an `E`.
    #[must_use]
    pub fn get<E: 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// Takes the error out.
    ///
    /// # Errors
    /// Gives all of it back if it is no `E`.
    pub fn downcast<E: 'static>(self) -> Result<E, Self> {
        let Self {
            method,
            text,
            error,
        } = self;
        match error.downcast() {
            Ok(error) => Ok(*error),
            Err(error) => Err(Self {
                method,
                text,
                error,
            }),
        }
    }
}

impl fmt::Display for ToldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.as_deref();
        write!(
            f,
            "`{}`: {}",
            self.method,
            text.unwrap_or("an error that cannot be shown")
        )
    }
}

impl fmt::Debug for ToldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
