// Package sqlfilter compiles and evaluates the SQL filters of Service Bus
// subscriptions (the SQLFilter syntax of the vendor's reference).
//
//	predicate   ::= NOT predicate | predicate AND predicate | predicate OR predicate
//	              | expression (= | <> | != | > | >= | < | <=) expression
//	              | expression IS [NOT] NULL
//	              | expression [NOT] IN (expression, ...)
//	              | expression [NOT] LIKE pattern [ESCAPE 'c']
//	              | EXISTS (property) | (predicate)
//	expression  ::= constant | property | @parameter | (expression)
//	              | expression (+ | - | * | / | %) expression | (+ | -) expression
//	property    ::= [sys. | user.] (identifier | [identifier] | "identifier")
//	constant    ::= integer | decimal | 1E5 | 'it''s' | TRUE | FALSE | NULL
//
// Logic has three values: a comparison with a property that is not there, or
// of values that do not compare, is unknown, and so is arithmetic with them. A
// message passes only where the whole predicate is true. Strings compare by
// code point; names of properties and keywords are not case sensitive.
//
// The functions newid() and property() are refused by name.
package sqlfilter
