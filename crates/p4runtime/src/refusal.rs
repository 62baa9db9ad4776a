//! Why a request is refused, as a canonical gRPC code with a message.

use prost::Message;
use tonic::{Code, Status};

use nicforge_flexnic::p4::tables::UpdateError;

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;
use crate::values::ValueError;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Canonical code.
    pub code: Code,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Refusal {
    /// A refusal with a code.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    /// Something in the message is wrong in itself.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidArgument, message)
    }

    /// The thing does not exist.
    pub fn missing(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::NotFound, message)
    }

    /// This NIC does not do that.
    pub fn unimplemented(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::Unimplemented, message)
    }
}

impl From<ValueError> for Refusal {
    fn from(error: ValueError) -> Refusal {
        let code = if error == ValueError::Empty { Code::InvalidArgument } else { Code::OutOfRange };
        Refusal::new(code, error.to_string())
    }
}

impl From<UpdateError> for Refusal {
    fn from(error: UpdateError) -> Refusal {
        let code = match &error {
            UpdateError::NoTable(_) | UpdateError::Missing { .. } => Code::NotFound,
            UpdateError::Exists { .. } => Code::AlreadyExists,
            UpdateError::Full { .. } => Code::ResourceExhausted,
            UpdateError::ConstEntries { .. } | UpdateError::ConstDefault { .. } => Code::PermissionDenied,
            UpdateError::KeyCount { .. }
            | UpdateError::Key { .. }
            | UpdateError::Action { .. }
            | UpdateError::Data { .. }
            | UpdateError::Value { .. }
            | UpdateError::NoSelector { .. } => Code::InvalidArgument,
        };
        Refusal::new(code, error.to_string())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status::new(refusal.code, refusal.message)
    }
}

/// The status of a batch of which some updates failed: one detail per update, in order (specification, section 12.3).
pub fn batch(results: &[Result<(), Refusal>]) -> Status {
    let details: Vec<prost_types::Any> = results
        .iter()
        .map(|result| {
            let error = match result {
                Ok(()) => p4::Error::default(),
                Err(refusal) => p4::Error {
                    canonical_code: refusal.code as i32,
                    message: refusal.message.clone(),
                    ..Default::default()
                },
            };
            prost_types::Any { type_url: "type.googleapis.com/p4.v1.Error".to_owned(), value: error.encode_to_vec() }
        })
        .collect();
    let failed = results.iter().filter(|result| result.is_err()).count();
    let message = format!("{failed} of {} updates failed", results.len());
    let status = rpc::Status { code: Code::Unknown as i32, message: message.clone(), details };
    Status::with_details(Code::Unknown, message, status.encode_to_vec().into())
}
