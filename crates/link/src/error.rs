//! What can be wrong with a description of a link.

/// Why a description of a link cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", self.place(), self.remedy())]
pub struct ConfigError {
    /// The key at fault, from the link's table inwards: `["down", "queue", "limit"]`. Elements of
    /// arrays are their index, from 0. Empty: the link as a whole.
    pub path: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
}

impl ConfigError {
    pub(crate) fn new(key: &str, message: impl Into<String>) -> Self {
        let path = key.split('.').filter(|k| !k.is_empty()).map(str::to_owned).collect();
        Self { path, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn place(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path.join(".")) }
    }

    fn remedy(&self) -> String {
        self.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"))
    }
}

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl TraceError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
