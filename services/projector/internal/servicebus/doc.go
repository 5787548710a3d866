// Package servicebus takes sessions from a Service Bus subscription with the
// official client. It is the only package of the projector that knows the
// client, and it keeps the client's habits away from the engine: receives
// linger only milliseconds, a close that the client blocks is left behind at
// its deadline, and a connection that has ended, or on which accepts hang, or are
// not answered while nothing else comes, is replaced as a whole.
//
// Every accepted session costs the client two rounds over the connection's one
// $cbs link, which it takes in turns. So sessions are spread over several
// connections: with one, the accepts of all slots would queue up behind it.
package servicebus
