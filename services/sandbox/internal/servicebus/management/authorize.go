package management

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/sas"
)

// authorize refuses a request whose token does not allow it, in the service's
// words.
func (h *handler) authorize(r *http.Request, t target) error {
	if h.keys == nil {
		return nil
	}
	token := r.Header.Get("Authorization")
	if token == "" {
		return unauthorized("MissingToken: The request has no authorization token.")
	}
	if !strings.HasPrefix(token, sas.Prefix) {
		return nil // one of Entra ID: clients send it with "Bearer" in front, or bare
	}
	claim, err := h.keys.Verify(token, r.URL.Path, time.Now())
	if err != nil {
		return unauthorized(err.Error())
	}
	if claim.Rights&sas.Manage != 0 {
		return nil
	}
	return h.forbid(r, t)
}

func unauthorized(detail string) error { return &apiError{http.StatusUnauthorized, detail} }

// forbid says what a token without the right to manage lacks. Of a queue or
// topic that is not there even it may know that.
func (h *handler) forbid(r *http.Request, t target) error {
	if t.isSubscription {
		return unauthorized(fmt.Sprintf("401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint 'sb://%s%s'.",
			t.operation(r.Method), r.Host, r.URL.Path))
	}
	switch r.Method {
	case http.MethodPut:
		return unauthorized("Authorization failed for specified action: Manage,EntityWrite.")
	case http.MethodDelete:
		return unauthorized("Authorization failed for specified action: Manage,EntityDelete.")
	}
	if t.entity != "" && !h.exists(t.entity) {
		return nil
	}
	return unauthorized("Manage,EntityRead claims required for this operation.")
}

func (h *handler) exists(name string) bool {
	if _, err := h.broker.Queue(name); err == nil {
		return true
	}
	_, err := h.broker.Topic(name)
	return err == nil
}

// operation is the service's name of what is done to a subscription or a rule.
func (t target) operation(method string) string {
	kind, list := "Subscription", t.listSubscriptions
	if t.isRule {
		kind, list = "Rule", t.listOfRule
	}
	switch {
	case list:
		return "Enumerate" + kind + "s"
	case method == http.MethodPut:
		return "CreateOrUpdate" + kind
	case method == http.MethodDelete:
		return "Delete" + kind
	}
	return "Get" + kind
}
