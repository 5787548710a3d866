// Package expression evaluates the expressions of declared projections. The
// language, its syntax and the check of its types are those of expr-lang/expr;
// the evaluation is this package's own, because three things must hold for every
// expression, whatever the event says:
//
//   - It is bounded. Each node that is evaluated and each element that a function
//     looks at is a step, each value that is made has a size, and both are counted
//     before the work is done. So steps, memory and time of an expression have limits,
//     and it ends when its context does. An expression with a function that is not in
//     the table of this package does not load.
//   - It makes nothing of what is missing. A missing field has no value: whatever needs
//     one fails, unless the expression says what to take instead (??), that the field
//     may be missing (?.), or asks whether it is (== nil).
//   - Its numbers are numbers. Integers have 64 bits and fail instead of wrapping, and
//     no calculation with finite numbers makes infinity or NaN.
//
// And it is pure: the same event makes the same value, on every machine. There is
// no now(), and no local time zone.
package expression
