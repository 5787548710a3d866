// Package projection decides which read documents a change writes, and how. It is pure:
// it reads no clock, no store and nothing at random, and of a document only what it is
// given. So the same change always makes the same writes. It knows nothing of how writes
// are stored or guarded.
//
// A Projection is one way of looking at changes, kept in a collection of its
// own. Two kinds come with the package: Latest keeps each aggregate's last
// data, and declared ones are read from a YAML file with Load. Others can be
// written in Go.
//
// # Declared projections
//
//	projections:
//	  - name: orders
//	    collection: orders
//	    on:
//	      OrderPlaced:
//	        set: {status: '"placed"', customer: data.customer}
//	        inc: {total: data.total, events: 1}
//	        push: {history: {value: event.type, last: 20}}
//	      OrderDeleted:
//	        delete: true
//
// With version, the documents are in a collection of that version, and collection
// names the view that readers use.
//
// With key, an expression, the projection has a document for each value of the key, which
// many aggregates may change; otherwise each aggregate has its own document.
//
// Under on are the types of events that the projection follows; it ignores others. The
// operators are MongoDB's: set, unset (a list of fields), inc, min, max, push (a value,
// or value and last, to keep only that many), addToSet, pull (a value, wherever it is in
// the array), and delete. Fields are paths with dots. A condition, when, may stand beside
// the operators or beside the value of a field; where it is false, the document or the
// field stays as it is. In a projection with a key an event type may have forEach, a
// list: what is beside it is done for each element, to the document of that element's
// key.
//
// A value that is a string is an expression in the language of expr-lang/expr,
// compiled and checked when the file is loaded; other scalars stand for
// themselves. An expression sees
//
//	data    the event's data
//	event   id, type, aggregateId, version, time, operation, sequence
//	item    the element, beside a forEach and in the key
//	state   what earlier events have made of the aggregate's document
//
// A write that uses state is made when it is stored, by Write.Complete. It is as
// reproducible as a pure decision, because the document results from earlier events of
// the aggregate alone. A projection with a key has no state, since its value would depend
// on the order of several aggregates' events.
//
// # What expressions see of BSON
//
// Package expression evaluates them. Strings, booleans, doubles and both widths of
// integers are what they are; a date is a time, a document a map, an array a list,
// and null is nil. A field that is missing is an error wherever its value is needed,
// unless it is written with ?. or ??, or compared with nil. Anything else, decimals
// and object ids among them, can be passed on and compared for equality, but not
// calculated with: a decimal keeps its digits, and inc, min and max leave the
// arithmetic to the server. A value that an expression passes on unchanged is stored
// with the type it came with, a document with its fields in the order they came in.
// What an expression calculates is an integer of 64 bits or a double; a map it builds
// is stored with its fields sorted by name. There is no now(): a replay must decide
// the same.
package projection
