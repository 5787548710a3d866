// Package expression evaluates aggregation expressions, as found in $expr, in
// projections, in update pipelines and in aggregation stages, with the meaning
// and the error codes of MongoDB 4.4.
//
// An expression is compiled to closures over its operands. What does not depend
// on the document is computed while compiling; if that fails, it fails again,
// with the same error, for the first document. A missing value is the zero
// bson.RawValue and takes part like any other; where it ends up as the value
// of a field, there is no field.
//
// Not supported, and refused as unknown: $meta, the format of $dateFromString and
// ISO weeks in $dateFromParts. Time zones are "UTC", "GMT" and offsets such
// as "+02:00"; names of places are refused.
package expression
