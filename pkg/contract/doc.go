// Package contract is the message contract between whoever publishes changes
// and whoever reads them: how one change of one aggregate is written as an
// Azure Service Bus message, and how such a message is read back.
//
// A message carries a CloudEvents 1.0 event in binary mode, so a consumer in
// any language can read it with a CloudEvents library or with none. Attributes
// travel as application properties with the AMQP binding's prefix
// (CloudEvents AMQP Protocol Binding 1.0.2, section 3.1.3.1); the data is the
// body.
//
// Two values carry the delivery promises, and both come from the change
// itself, never from the process that sends it:
//
//   - Event.ID names the change. The same change has the same id whoever
//     sends it and however often, so a broker can drop repeats.
//   - Event.Sequence orders the changes of one aggregate bytewise. A consumer
//     that writes only over a lower sequence can apply any message twice, late,
//     or after a newer one, and end up the same.
//
// The package imports only the standard library. It knows neither the Service
// Bus SDK nor the MongoDB driver: adapters turn Message into theirs.
package contract
