//! The requests that go to the active controller, and how each is refused by a controller that is not active.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, AlterPartitionRequest, AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest, BrokerRegistrationRequest, ControllerRegistrationRequest,
    CreateTopicsRequest, EnvelopeRequest,
};
use kafka_protocol::protocol::Request;

/// A request for the active controller.
pub trait ControllerRequest: Request {
    /// Kafka's name of the API, without "Request".
    const NAME: &'static str;

    /// Whether the response says that another controller is to be asked.
    fn is_not_controller(response: &Self::Response) -> bool;
}

fn is_not_controller(error_code: i16) -> bool {
    error_code == ResponseError::NotController.code()
}

macro_rules! controller_requests {
    ($($name:literal $request:ty;)*) => {
        $(impl ControllerRequest for $request {
            const NAME: &'static str = $name;

            fn is_not_controller(response: &Self::Response) -> bool {
                is_not_controller(response.error_code)
            }
        })*
    };
}

controller_requests! {
    "BrokerRegistration" BrokerRegistrationRequest;
    "ControllerRegistration" ControllerRegistrationRequest;
    "BrokerHeartbeat" BrokerHeartbeatRequest;
    "AlterPartition" AlterPartitionRequest;
    "AllocateProducerIds" AllocateProducerIdsRequest;
    "AssignReplicasToDirs" AssignReplicasToDirsRequest;
    "Envelope" EnvelopeRequest;
}

impl ControllerRequest for CreateTopicsRequest {
    const NAME: &'static str = "CreateTopics";

    fn is_not_controller(response: &Self::Response) -> bool {
        let mut topics = response.topics.iter();
        topics.any(|topic| is_not_controller(topic.error_code))
    }
}
