package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// hostileMessages is a client that sends AMQP frames that are mostly right each,
// in an order and with values that no client would choose.
type hostileMessages struct {
	*hostility
	address string
	random  *rand.Rand
	out     []byte
	told    []string
}

func newHostileMessages(h *hostility, address string, worker int) *hostileMessages {
	return &hostileMessages{hostility: h, address: address, random: h.random(100 + worker)}
}

// run opens one connection after another.
func (c *hostileMessages) run(ctx context.Context) {
	for ctx.Err() == nil {
		nc, err := net.Dial("tcp", c.address)
		if err != nil {
			return // the process is dead, which others notice
		}
		c.connections.Add(1)
		_ = nc.SetDeadline(time.Now().Add(answerPatience))
		read := make(chan struct{})
		c.out, c.told = nil, nil
		c.compose()
		go func() {
			defer close(read)
			c.judgeAll(nc)
		}()
		_, _ = nc.Write(c.out) // the server may have had enough
		if c.random.IntN(2) == 0 {
			_ = nc.(*net.TCPConn).CloseWrite()
		}
		<-read
		_ = nc.Close()
	}
}

// compose makes all that one connection sends.
func (c *hostileMessages) compose() {
	if c.random.IntN(3) == 0 {
		c.out = append(c.out, amqp.HeaderSASL[:]...)
		c.add(amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: c.text("ANONYMOUS", "PLAIN", "EXTERNAL", "MSSBCBS", "NONE"), InitialResponse: []byte("\x00a\x00b")})
	}
	c.out = append(c.out, amqp.HeaderAMQP[:]...)
	c.add(amqp.FrameAMQP, 0, &amqp.Open{ContainerID: "hostile", MaxFrameSize: c.number(65_536), ChannelMax: uint16(c.number(10)), IdleTimeout: c.number(60_000)})
	c.add(amqp.FrameAMQP, 0, &amqp.Begin{IncomingWindow: c.number(100), OutgoingWindow: c.number(100), HandleMax: c.number(10)})
	for range c.random.IntN(40) {
		c.step()
	}
	if c.random.IntN(5) == 0 {
		for range 1 + c.random.IntN(5) {
			c.out[c.random.IntN(len(c.out))] = byte(c.random.Uint32())
		}
	}
	if c.random.IntN(10) == 0 {
		c.out = c.out[:c.random.IntN(len(c.out))]
	}
}

// step adds a frame or two.
func (c *hostileMessages) step() {
	channel := uint16(0)
	if c.random.IntN(10) == 0 {
		channel = uint16(c.random.IntN(3))
	}
	switch c.random.IntN(16) {
	case 0, 1:
		c.attach(channel)
	case 2:
		c.ask(channel)
	case 3, 4, 5, 6:
		c.transfer(channel, c.handle(), c.message())
	case 7, 8, 9:
		c.add(amqp.FrameAMQP, channel, &amqp.Flow{
			NextIncomingID: c.optional(0), IncomingWindow: c.number(100), NextOutgoingID: c.number(0), OutgoingWindow: c.number(100),
			Handle: amqp.Some(c.handle()), DeliveryCount: c.optional(0), LinkCredit: c.optional(10), Drain: c.one(5), Echo: c.one(5),
		})
	case 10, 11, 12:
		c.add(amqp.FrameAMQP, channel, &amqp.Disposition{
			Role: !c.one(6), First: c.number(uint32(c.random.IntN(5))), Last: c.optional(uint32(c.random.IntN(8))), Settled: c.one(2), State: c.state(),
		})
	case 13:
		c.add(amqp.FrameAMQP, channel, &amqp.Detach{Handle: c.handle(), Closed: c.one(2)})
	case 14:
		if c.one(2) {
			c.add(amqp.FrameAMQP, channel, &amqp.End{})
		} else {
			c.add(amqp.FrameAMQP, channel, &amqp.Begin{RemoteChannel: c.optional(0), IncomingWindow: c.number(100), OutgoingWindow: c.number(100)})
		}
	case 15:
		c.out = append(c.out, amqp.Heartbeat[:]...)
	}
}

// attach adds a link, mostly one that works.
func (c *hostileMessages) attach(channel uint16) {
	handle, address := c.handle(), c.text("plain", "sessions", "changes", "changes/Subscriptions/projector", "changes/Subscriptions/observer",
		"plain/$DeadLetterQueue", "sessions/$DeadLetterQueue", "$cbs", "plain/$management", "nosuch", "", "CHANGES/subscriptions/PROJECTOR")
	a := &amqp.Attach{
		Name: fmt.Sprint("link", handle), Handle: handle, SenderMode: uint8(c.random.IntN(4)), ReceiverMode: uint8(c.random.IntN(3)),
		MaxMessageSize: uint64(c.number(0)), Properties: amqp.Map{{Key: amqp.Symbol("com.microsoft:timeout"), Value: c.value(1)}},
	}
	if c.one(2) {
		a.Role, a.Source, a.Target = amqp.RoleSender, &amqp.Source{}, &amqp.Target{Address: address, Dynamic: c.one(20), Coordinator: c.one(20)}
		a.InitialDeliveryCount = c.optional(0)
	} else {
		a.Role, a.Source, a.Target = amqp.RoleReceiver, &amqp.Source{Address: address, Dynamic: c.one(20)}, &amqp.Target{}
		if strings.Contains(address, "session") || strings.Contains(address, "projector") || c.one(10) {
			a.Source.Filter = amqp.Map{{Key: amqp.Symbol("com.microsoft:session-filter"), Value: []any{nil, "a", "b", "", int32(5), amqp.Map{}}[c.random.IntN(6)]}}
		}
	}
	c.add(amqp.FrameAMQP, channel, a)
	if a.Role == amqp.RoleReceiver {
		c.add(amqp.FrameAMQP, channel, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 100, OutgoingWindow: 100, Handle: amqp.Some(handle), LinkCredit: amqp.Some(c.number(10))})
	}
}

// ask adds a request to a $management node, with the links for it.
func (c *hostileMessages) ask(channel uint16) {
	node := c.text("plain", "sessions", "changes", "changes/Subscriptions/projector", "changes/Subscriptions/observer") + "/$management"
	if c.one(8) {
		node = "$cbs"
	}
	c.add(amqp.FrameAMQP, channel, &amqp.Attach{Name: "ask", Handle: 8, Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: node}})
	c.add(amqp.FrameAMQP, channel, &amqp.Attach{Name: "answers", Handle: 9, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: node}, Target: &amqp.Target{Address: "answers"}})
	c.add(amqp.FrameAMQP, channel, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 100, OutgoingWindow: 100, Handle: amqp.Some(9), LinkCredit: amqp.Some(50)})
	for range 1 + c.random.IntN(3) {
		operation := c.text("renew-lock", "peek-message", "receive-by-sequence-number", "update-disposition", "schedule-message", "cancel-scheduled-message",
			"renew-session-lock", "get-session-state", "set-session-state", "get-message-sessions", "add-rule", "remove-rule", "enumerate-rules", "dance")
		body := amqp.Map{}
		for _, field := range requestFields {
			if c.one(2) {
				body = append(body, amqp.Pair{Key: field, Value: c.value(3)})
			}
		}
		request := amqp.AppendProperties(nil, &amqp.Properties{MessageID: c.value(1), ReplyTo: c.text("answers", "answers", "answers", "nobody", "")})
		request = amqp.AppendApplicationProperties(request, amqp.Map{
			{Key: "operation", Value: "com.microsoft:" + operation},
			{Key: "associated-link-name", Value: fmt.Sprint("link", c.random.IntN(4))},
			{Key: "type", Value: "servicebus.windows.net:sastoken"},
			{Key: "name", Value: c.value(1)},
		})
		c.transfer(channel, 8, amqp.AppendBodyValue(request, body))
	}
}

// requestFields are what requests have in their body.
var requestFields = []string{
	"lock-tokens", "from-sequence-number", "message-count", "session-id", "sequence-numbers", "receiver-settle-mode", "disposition-status",
	"deadletter-reason", "deadletter-description", "properties-to-modify", "messages", "session-state", "skip", "top", "last-updated-time",
	"last-session-id", "rule-name", "rule-description", "sql-filter", "correlation-filter", "sql-rule-action", "expression",
}

// message is a message, mostly a good one.
func (c *hostileMessages) message() []byte {
	b := amqp.AppendHeader(nil, amqp.Header{Durable: c.one(2), TTL: c.optional(1000), DeliveryCount: c.number(0)})
	session := c.text("a", "b", "", strings.Repeat("s", 200))
	b = amqp.AppendAnnotations(b, amqp.Map{
		{Key: amqp.Symbol("x-opt-partition-key"), Value: c.value(1)},
		{Key: amqp.Symbol("x-opt-scheduled-enqueue-time"), Value: []any{nil, time.Now().Add(time.Second), "soon"}[c.random.IntN(3)]},
	}[c.random.IntN(3):2])
	b = amqp.AppendProperties(b, &amqp.Properties{MessageID: c.value(1), GroupID: &session, Subject: "s", ReplyTo: "r", CorrelationID: c.value(0)})
	b = amqp.AppendApplicationProperties(b, amqp.Map{{Key: "tenant", Value: c.value(2)}})
	return amqp.AppendBodyData(b, make([]byte, c.random.IntN(400)))
}

// transfer adds a message in one frame or two, or a batch of it.
func (c *hostileMessages) transfer(channel uint16, handle uint32, message []byte) {
	t := amqp.Transfer{Handle: handle, DeliveryID: c.optional(uint32(c.random.IntN(20))), DeliveryTag: []byte{1}, Settled: c.one(5), Aborted: c.one(20), More: c.one(20)}
	if c.one(4) {
		var batch []byte
		for range c.random.IntN(5) {
			batch = amqp.AppendBodyData(batch, message)
		}
		message, t.MessageFormat = batch, amqp.Some(0x80013700)
	}
	size := 1 << 16
	if c.one(5) {
		size = 64 + c.random.IntN(200)
	}
	b, rest := amqp.AppendTransfer(nil, channel, &t, message, size)
	if len(rest) > 0 && !c.one(5) {
		b, _ = amqp.AppendTransfer(b, channel, &t, rest, 1<<16)
	}
	c.frames.Add(1)
	c.out = append(c.out, b...)
}

func (c *hostileMessages) add(kind byte, channel uint16, p amqp.Performative) {
	c.frames.Add(1)
	c.told = append(c.told, fmt.Sprintf("%T%+v", p, p))
	c.out = amqp.AppendFrame(c.out, kind, channel, p)
}

// one is true once in n times.
func (c *hostileMessages) one(n int) bool { return c.random.IntN(n) == 0 }

func (c *hostileMessages) text(of ...string) string { return of[c.random.IntN(len(of))] }

func (c *hostileMessages) handle() uint32 { return c.number(uint32(c.random.IntN(4))) }

// number is mostly the usual one.
func (c *hostileMessages) number(usual uint32) uint32 {
	if c.one(15) {
		return []uint32{0, 1, 511, 1 << 31, math.MaxUint32, math.MaxInt32}[c.random.IntN(6)]
	}
	return usual
}

func (c *hostileMessages) optional(usual uint32) amqp.Optional {
	if c.one(6) {
		return amqp.Optional{}
	}
	return amqp.Some(c.number(usual))
}

// value is any value there is, down to a depth.
func (c *hostileMessages) value(depth int) any {
	if depth > 0 && c.one(3) {
		switch c.random.IntN(3) {
		case 0:
			return []any{c.value(depth - 1), c.value(depth - 1)}
		case 1:
			return amqp.Map{{Key: requestFields[c.random.IntN(len(requestFields))], Value: c.value(depth - 1)}}
		default:
			return amqp.Array{Items: []any{int64(1), int64(c.random.IntN(9))}}
		}
	}
	plain := []any{
		nil, true, "a", "", "1=1", "sys.Label LIKE '%'", int64(0), int64(1), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), int32(1), int32(-1),
		int32(1000), uint32(1), uint8(1), uint64(math.MaxUint64), 1.5, math.NaN(), float32(1), []byte("state"), amqp.Symbol("symbol"),
		amqp.UUID{1},
		amqp.Char('x'),
		time.Now(),
		time.Time{},
		time.UnixMilli(math.MaxInt64), "completed", "suspended", "defered", "abandoned", "renewed",
	}
	return plain[c.random.IntN(len(plain))]
}

func (c *hostileMessages) state() amqp.State {
	return []amqp.State{
		amqp.Accepted{},
		amqp.Accepted{},
		amqp.Released{},
		amqp.Rejected{},
		amqp.Rejected{Error: &amqp.Error{Condition: "com.microsoft:dead-letter", Info: amqp.Map{{Key: amqp.Symbol("DeadLetterReason"), Value: c.value(1)}}}},
		amqp.Modified{},
		amqp.Modified{DeliveryFailed: true, MessageAnnotations: amqp.Map{{Key: amqp.Symbol("x"), Value: c.value(1)}}},
		amqp.Modified{UndeliverableHere: true},
		amqp.Received{SectionNumber: 1},
		amqp.Transactional{},
		nil,
	}[c.random.IntN(11)]
}

// judgeAll reads what the server sends, until it ends or the time is over.
func (c *hostileMessages) judgeAll(nc net.Conn) {
	in := bufio.NewReader(nc)
	frames := amqp.NewFrameReader(in, 1<<20)
	for {
		first, _ := in.Peek(4)
		if string(first) == "HTTP" {
			return // a changed header asked for that
		}
		if string(first) == "AMQP" {
			if _, err := in.Discard(8); err != nil {
				return
			}
			continue
		}
		frame, err := frames.Read()
		if err != nil {
			if _, bad := errors.AsType[*amqp.Error](err); bad {
				c.complain(fmt.Sprint("a frame that is none: ", err), strings.Join(c.told, "\n"))
				_, _ = io.Copy(io.Discard, nc)
			}
			return
		}
		if len(frame.Body) > 0 {
			c.judge(frame)
		}
	}
}

func (c *hostileMessages) judge(frame amqp.Frame) {
	p, payload, err := amqp.ReadPerformative(frame.Body)
	if err != nil {
		c.complain(fmt.Sprint("a frame that cannot be read: ", err), strings.Join(c.told, "\n"))
		return
	}
	var reason *amqp.Error
	switch p := p.(type) {
	case *amqp.Close:
		reason = p.Error
	case *amqp.End:
		reason = p.Error
	case *amqp.Detach:
		reason = p.Error
	case *amqp.Disposition:
		if rejected, ok := p.State.(amqp.Rejected); ok {
			reason = rejected.Error
		}
	case *amqp.Transfer:
		if m, err := amqp.ReadMessage(payload); err == nil && m.ApplicationProperties.Get("statusCode") == int32(500) {
			c.complain("a status of 500: "+m.ApplicationProperties.String("statusDescription"), strings.Join(c.told, "\n"))
		}
	}
	if reason != nil && reason.Condition == amqp.ConditionInternalError {
		c.complain("an internal error: "+reason.Description, strings.Join(c.told, "\n"))
	}
}
