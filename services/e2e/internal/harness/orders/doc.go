// Package orders is the demo's business: seeded events of many orders, the read
// model that orders.yaml declares, and that read model computed a second time,
// in plain Go, from nothing but the events.
//
// The recomputation shares no code with the projector. Where both agree, the
// declaration was carried out as written, whatever was killed on the way.
package orders
