//! A controller in the same process, without gRPC between.

use tokio::sync::mpsc;
use tonic::Status;

use crate::arbitration::{StreamId, ToClient, WAITING_MAX};
use crate::proto::p4::v1 as p4;
use crate::service::Service;

/// A controller in the same process, with a stream of its own.
pub struct Direct {
    service: Service,
    stream: StreamId,
    to: ToClient,
    from: mpsc::Receiver<Result<p4::StreamMessageResponse, Status>>,
}

impl Direct {
    /// Opens a stream.
    pub fn new(service: &Service) -> Direct {
        let (to, from) = mpsc::channel(WAITING_MAX);
        Direct { service: service.clone(), stream: service.open(), to, from }
    }

    /// Sends a message on the stream.
    ///
    /// # Errors
    /// The status with which the stream would end.
    pub fn send(&self, message: p4::StreamMessageRequest) -> Result<(), Status> {
        self.service.on_stream(self.stream, &self.to, message)
    }

    /// The next message of the service, if there is one.
    pub fn receive(&mut self) -> Option<p4::StreamMessageResponse> {
        self.from.try_recv().ok()?.ok()
    }

    /// `Write`
    ///
    /// # Errors
    /// As the service answers.
    pub fn write(&self, request: &p4::WriteRequest) -> Result<(), Status> {
        self.service.on_write(request)
    }

    /// `Read`
    ///
    /// # Errors
    /// As the service answers.
    pub fn read(&self, request: &p4::ReadRequest) -> Result<Vec<p4::Entity>, Status> {
        self.service.on_read(request)
    }

    /// `SetForwardingPipelineConfig`
    ///
    /// # Errors
    /// As the service answers.
    pub fn set_config(&self, request: &p4::SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        self.service.on_config(request)
    }

    /// Lets the service deliver what waits, as its own task does.
    pub fn deliver(&self) {
        self.service.deliver_now();
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.service.close(self.stream);
    }
}
