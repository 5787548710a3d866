package management

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// maxBody bounds a request's body in bytes.
const maxBody = 1 << 20

type handler struct {
	broker *broker.Broker
	keys   sas.Keys
	log    zerolog.Logger
}

// NewHandler is the API without its listener. With keys it serves whoever has
// the right to manage.
func NewHandler(b *broker.Broker, keys sas.Keys, log zerolog.Logger) http.Handler {
	return &handler{broker: b, keys: keys, log: log}
}

// ServeHTTP takes the path apart by hand: names of entities hold slashes.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	path := strings.Trim(r.URL.Path, "/")
	t := parseTarget(path)
	if strings.HasPrefix(path, "$") {
		t = target{} // of the namespace
	}
	if err := h.authorize(r, t); err != nil {
		h.refuse(w, r, err)
		return
	}
	if err := h.broker.Manage(); err != nil {
		h.refuse(w, r, err)
		return
	}
	switch strings.ToLower(path) {
	case "$namespaceinfo":
		h.answer(w, r, http.MethodGet, h.namespaceInfo)
		return
	case "$resources/queues":
		h.answer(w, r, http.MethodGet, h.listQueues)
		return
	case "$resources/topics":
		h.answer(w, r, http.MethodGet, h.listTopics)
		return
	}
	h.serveEntity(w, r, t)
}

// target is a path below the namespace. An empty subscription or rule with its
// part of the path present asks for the list.
type target struct {
	entity, subscription, rule    string
	isSubscription, isRule        bool
	listSubscriptions, listOfRule bool
}

func parseTarget(path string) target {
	entity, rest, found := cutSegment(path, "subscriptions")
	if !found {
		return target{entity: path}
	}
	t := target{entity: entity, isSubscription: true}
	rest = strings.Trim(rest, "/")
	name, rules, found := strings.Cut(rest, "/")
	t.subscription = name
	t.listSubscriptions = name == ""
	if found {
		word, rule, _ := strings.Cut(rules, "/")
		if !strings.EqualFold(word, "rules") {
			return target{entity: path} // which there is not
		}
		t.isRule = true
		t.rule = strings.Trim(rule, "/")
	}
	t.listOfRule = t.isRule && t.rule == ""
	return t
}

// cutSegment cuts a path around its first segment, after the first, that is the
// given one in whatever case.
func cutSegment(path, segment string) (before, after string, found bool) {
	for i := range len(path) {
		rest, begins := strings.CutPrefix(path[i:], "/")
		if !begins {
			continue
		}
		if name, after, _ := strings.Cut(rest, "/"); strings.EqualFold(name, segment) {
			return path[:i], after, true
		}
	}
	return path, "", false
}

func (h *handler) serveEntity(w http.ResponseWriter, r *http.Request, t target) {
	var get, put, remove func(*http.Request, target) (any, error)
	switch {
	case t.listOfRule && r.Method == http.MethodGet:
		get = h.listRules
	case t.isRule:
		get, put, remove = h.getRule, h.putRule, h.deleteRule
	case t.listSubscriptions:
		get = h.listSubscriptions
	case t.isSubscription:
		get, put, remove = h.getSubscription, h.putSubscription, h.deleteSubscription
	default:
		get, put, remove = h.getEntity, h.putEntity, h.deleteEntity
	}
	serve := map[string]func(*http.Request, target) (any, error){
		http.MethodGet: get, http.MethodPut: put, http.MethodDelete: remove,
	}[r.Method]
	if serve == nil {
		h.refuse(w, r, &apiError{http.StatusMethodNotAllowed, fmt.Sprintf("The method %s is not allowed here.", r.Method)})
		return
	}
	h.answer(w, r, r.Method, func(r *http.Request) (any, error) { return serve(r, t) })
}

// answer writes what serve returns, or why it does not.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, method string, serve func(*http.Request) (any, error)) {
	if r.Method != method {
		h.refuse(w, r, &apiError{http.StatusMethodNotAllowed, fmt.Sprintf("The method %s is not allowed here.", r.Method)})
		return
	}
	body, err := serve(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if r.Method == http.MethodPut && !changes(r) {
		status = http.StatusCreated
	}
	h.write(w, r, status, body)
}

// changes tells a PUT for an entity that is there.
func changes(r *http.Request) bool { return r.Header.Get("If-Match") != "" }

func (h *handler) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/atom+xml;type=entry;charset=utf-8")
	if body == nil {
		w.WriteHeader(status)
		return
	}
	text, err := xml.Marshal(body)
	if err != nil {
		h.log.Error().Err(err).Str("path", r.URL.Path).Msg("management answer not written")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(bytes.ReplaceAll(text, []byte("&#39;"), []byte("'"))) // as the service writes it: its texts are compared
}

// apiError is a refusal with its status.
type apiError struct {
	status int
	detail string
}

func (e *apiError) Error() string { return e.detail }

func badRequest(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

type errorBody struct {
	XMLName xml.Name `xml:"Error"`
	Code    int
	Detail  string
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := classify(err)
	h.log.Debug().Str("method", r.Method).Str("path", r.URL.Path).Int("status", refusal.status).Str("detail", refusal.detail).
		Msg("management request refused")
	h.write(w, r, refusal.status, errorBody{Code: refusal.status, Detail: refusal.detail})
}

// classify finds the status for an error. What is not known is the server's
// fault.
func classify(err error) *apiError {
	if refusal, ok := errors.AsType[*apiError](err); ok {
		return refusal
	}
	var fromBroker *entity.Error
	if !errors.As(err, &fromBroker) {
		return &apiError{http.StatusInternalServerError, err.Error()}
	}
	status, known := map[string]int{
		entity.ConditionNotFound:              http.StatusNotFound,
		entity.ConditionEntityExists:          http.StatusConflict,
		entity.ConditionArgument:              http.StatusBadRequest,
		entity.ConditionServerBusy:            http.StatusServiceUnavailable,
		entity.ConditionResourceLimitExceeded: http.StatusForbidden,
	}[fromBroker.Condition]
	if !known {
		status = http.StatusInternalServerError
	}
	return &apiError{status, "SubCode=" + strconv.Itoa(status*100) + ". " + fromBroker.Description}
}
