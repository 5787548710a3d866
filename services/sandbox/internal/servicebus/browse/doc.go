// Package browse shows the messages and sessions of a namespace to people, and
// sends messages for them. It is the Service Bus side of package statuspage.
//
// Looking takes no lock, counts no delivery, costs no credit and passes by every
// fault; sending is a client's send like any other.
package browse
