// Package beetle is a client of Beetle's socket with the standard library alone; docs/clients/go.md explains it.
package beetle

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"sync"
	"time"
)

// Error is an error that the daemon answered.
type Error struct {
	Key       string         `json:"key"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
}

func (e *Error) Error() string { return e.Key + ": " + e.Message }

// Event is an event of a subscription. One without a topic has Event["dropped"]: so many were lost.
type Event struct {
	Sub   string         `json:"sub"`
	Topic string         `json:"topic"`
	Seq   int64          `json:"seq"`
	Event map[string]any `json:"event"`
}

type answer struct {
	ID     *uint64         `json:"id"`
	OK     bool            `json:"ok"`
	Report json.RawMessage `json:"report"`
	Error  *Error          `json:"error"`
}

type call struct {
	answered   chan answer
	progress   func(map[string]any)
	subscribes bool
}

// Options of a call.
type Options struct {
	IdempotencyKey string               // makes a write safe to repeat
	Deadline       time.Duration        // the daemon's deadline; 0: the profile's
	Scope          map[string]string    // owner_id, agent_id, conversation_id, …
	Progress       func(map[string]any) // hears the progress of a long call; it must not call the client
}

// Client is one connection. Goroutines may share it.
type Client struct {
	conn    net.Conn
	auth    map[string]string
	ended   chan struct{} // closed when the connection has ended, for the reason err
	follow  sync.Once
	writing sync.Mutex

	guard  sync.Mutex // of what follows
	lastID uint64
	calls  map[uint64]*call
	events map[string]chan Event
	err    error
}

// EventBuffer is how many events of a subscription wait for their reader. When it is full, the connection waits.
const EventBuffer = 1024

// Dial connects. An empty path means $BEETLE_SOCKET; auth is nil, or holds device_id and app_key, or principal.
func Dial(path string, auth map[string]string) (*Client, error) {
	if path == "" {
		path = os.Getenv("BEETLE_SOCKET")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	c := &Client{
		conn: conn, auth: auth, ended: make(chan struct{}), calls: map[uint64]*call{}, events: map[string]chan Event{},
	}
	go c.read()
	return c, nil
}

// Call runs one operation and decodes its report. When ctx ends first, the connection is closed: the daemon cancels a
// read, and completes a write that was sent.
func (c *Client) Call(ctx context.Context, op string, args, report any, options Options) error {
	if options.Progress != nil {
		var err error
		c.follow.Do(func() {
			topics := SubscribeRequest{Topics: []string{"lifecycle"}}
			err = c.ask(ctx, "subscribe", topics, &SubscribeReport{}, &call{}, Options{})
		})
		if err != nil {
			return err
		}
	}
	return c.ask(ctx, op, args, report, &call{progress: options.Progress}, options)
}

// Subscribe follows events of these topics. The channel is closed when the connection ends.
func (c *Client) Subscribe(ctx context.Context, topics ...string) (<-chan Event, error) {
	var made SubscribeReport
	asked := SubscribeRequest{Topics: topics}
	if err := c.ask(ctx, "subscribe", asked, &made, &call{subscribes: true}, Options{}); err != nil {
		return nil, err
	}
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.events[made.Sub], nil
}

// Close ends the connection.
func (c *Client) Close() { c.end(net.ErrClosed) }

func (c *Client) ask(ctx context.Context, op string, args, report any, made *call, options Options) error {
	frame := map[string]any{"v": 1, "op": op, "args": args}
	if c.auth != nil {
		frame["auth"] = c.auth
	}
	if options.Scope != nil {
		frame["scope"] = options.Scope
	}
	if options.IdempotencyKey != "" {
		frame["idempotency_key"] = options.IdempotencyKey
	}
	if options.Deadline != 0 {
		frame["deadline_ms"] = options.Deadline.Milliseconds()
	}
	made.answered = make(chan answer, 1)
	c.guard.Lock()
	c.lastID++
	frame["id"] = c.lastID
	c.calls[c.lastID] = made
	c.guard.Unlock()
	if err := c.send(frame); err != nil {
		return err
	}
	select {
	case found := <-made.answered:
		if !found.OK {
			return found.Error
		}
		return json.Unmarshal(found.Report, report)
	case <-ctx.Done():
		c.end(ctx.Err())
		return ctx.Err()
	case <-c.ended:
		return c.err
	}
}

func (c *Client) send(frame map[string]any) error {
	data, err := encode(frame)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err = c.conn.Write(data); err != nil {
		c.end(err)
	}
	return err
}

func (c *Client) read() {
	in := bufio.NewReaderSize(c.conn, 64*1024)
	for {
		frame, err := decode(in)
		if err == nil {
			err = c.received(frame)
		}
		if err != nil {
			c.end(err)
			break
		}
	}
	c.guard.Lock()
	defer c.guard.Unlock()
	for _, events := range c.events {
		close(events)
	}
}

func (c *Client) received(frame any) error {
	// MessagePack as JSON, which the standard library decodes into the generated structs.
	data, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	if fields, _ := frame.(map[string]any); fields["sub"] != nil {
		var found Event
		if err := json.Unmarshal(data, &found); err != nil {
			return err
		}
		c.happened(found)
		return nil
	}
	var found answer
	if err := json.Unmarshal(data, &found); err != nil {
		return err
	}
	if found.ID == nil { // the daemon refuses the connection itself, and closes it
		return found.Error
	}
	c.guard.Lock()
	defer c.guard.Unlock()
	made := c.calls[*found.ID]
	delete(c.calls, *found.ID)
	if made.subscribes && found.OK {
		// Before the next frame is read: it can be the first event.
		var report SubscribeReport
		if err := json.Unmarshal(found.Report, &report); err != nil {
			return err
		}
		c.events[report.Sub] = make(chan Event, EventBuffer)
	}
	made.answered <- found
	return nil
}

func (c *Client) happened(found Event) {
	c.guard.Lock()
	events := c.events[found.Sub]
	var progress func(map[string]any)
	if id, is := found.Event["id"].(float64); is && found.Event["event"] == "progress" {
		if made := c.calls[uint64(id)]; made != nil {
			progress = made.progress
		}
	}
	c.guard.Unlock()
	if progress != nil {
		progress(found.Event)
	} else if events != nil {
		select {
		case events <- found:
		case <-c.ended:
		}
	}
}

func (c *Client) end(reason error) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.err == nil {
		c.err = reason
		close(c.ended)
		c.conn.Close()
	}
}
