// Package management serves the administration API of a Service Bus namespace:
// Atom entries over HTTP, as azservicebus/admin and autoscalers speak it.
//
//	GET    /$namespaceinfo
//	GET    /$Resources/Queues, /$Resources/Topics     $skip and $top page
//	GET    /TOPIC/Subscriptions, /TOPIC/Subscriptions/NAME/Rules
//	GET, PUT, DELETE   /QUEUE, /TOPIC, /TOPIC/Subscriptions/NAME, .../Rules/NAME
//	GET    /$certificate      ours: the certificate of the HTTPS side, in PEM
//
// A PUT makes an entity; with If-Match it changes one, and what it does not
// mention stays. Elements that the namespace cannot honour, or that nobody
// knows, are refused by name. A queue or topic that is not there is answered
// with the service's empty feed.
//
// One port speaks HTTP and HTTPS, told apart by the first byte: the official
// client insists on HTTPS, people and probes rather use HTTP. Authorization is
// not looked at: the sandbox trusts who reaches it.
package management
