package amqp

// Conditions of the standard (part 2, sections 2.8.15 to 2.8.18) that this service uses.
const (
	ConditionInternalError         = "amqp:internal-error"
	ConditionNotFound              = "amqp:not-found"
	ConditionUnauthorized          = "amqp:unauthorized-access"
	ConditionDecodeError           = "amqp:decode-error"
	ConditionResourceLimitExceeded = "amqp:resource-limit-exceeded"
	ConditionNotAllowed            = "amqp:not-allowed"
	ConditionInvalidField          = "amqp:invalid-field"
	ConditionNotImplemented        = "amqp:not-implemented"

	ConditionConnectionForced = "amqp:connection:forced"
	ConditionFramingError     = "amqp:connection:framing-error"

	ConditionHandleInUse      = "amqp:session:handle-in-use"
	ConditionUnattachedHandle = "amqp:session:unattached-handle"

	ConditionDetachForced          = "amqp:link:detach-forced"
	ConditionTransferLimitExceeded = "amqp:link:transfer-limit-exceeded"
	ConditionMessageSizeExceeded   = "amqp:link:message-size-exceeded"
)

// Error is an AMQP error (section 2.8.14), on the wire and as a Go error.
type Error struct {
	Condition   string
	Description string
	Info        Map
}

func (e *Error) Error() string {
	if e.Description == "" {
		return e.Condition
	}
	return e.Condition + ": " + e.Description
}

func (e *Error) append(b []byte) []byte {
	c := beginComposite(b, descError)
	c.value(Symbol(e.Condition))
	c.text(e.Description)
	c.mapping(e.Info)
	return c.end()
}

// failure writes an error field.
func (c *composite) failure(e *Error) {
	if e != nil {
		c.set(e.append(c.b))
		return
	}
	c.null()
}

// failure reads an error field.
func (f *fields) failure() *Error {
	if f.absent() {
		return nil
	}
	if code := f.descriptor(); code != descError {
		f.unexpected("error", byte(code))
		return nil
	}
	l := f.list()
	e := &Error{Condition: l.text(), Description: l.text(), Info: l.mapping()}
	l.close()
	return e
}
