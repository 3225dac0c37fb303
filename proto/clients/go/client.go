// Package portcullis asks a PDP over one DecideStream, and guards handlers of net/http.
package portcullis

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "portcullis.dev/client/internal/decision"
)

const (
	connectTime  = 2 * time.Second
	backoffFirst = 50 * time.Millisecond
	backoffMax   = time.Second
	questionsMax = 200   // Of one message.
	tokensMax    = 1_000 // Of one stream; a PDP keeps more.
	// After so many questions in a row without an answer in time, the stream is given up.
	silentMax = 5
)

// Options say where the PDPs are, and as whom this process calls them.
type Options struct {
	// Each "host:port"; they are tried in turn.
	Addresses []string
	// Nil is plain text, which a PDP accepts on loopback only.
	TLS *tls.Config
	// Returns the access token of this process, with the scope decisions:ask; called for each new stream. Nil: none is sent.
	Token func() (string, error)
	// The time that an answer may take, with all attempts. Default 500 ms.
	Deadline time.Duration
	// The most questions that may wait at once. Default 10,000.
	OpenMax int
}

// A Check is a relation on a resource, "type:id".
type Check struct{ Relation, Resource string }

// A Question is about the bearer of a token. Context: values of parameters of conditions. RequestID and ClientAddress: of
// your request and of its sender, for the decision log.
type Question struct {
	Permissions              []Check
	Entitlements             []string
	Context                  map[string]any
	RequestID, ClientAddress string
}

// A Permission with an Error could not be decided; Allowed is then false.
type Permission struct {
	Check
	Allowed bool
	Error   string
}

// An Entitlement of the organization.
type Entitlement struct {
	Value   map[string]any
	Version int64
}

// A Subject is a user, a service, or of another type.
type Subject struct{ Type, ID string }

// A Decision about a token that is not active allows nothing, and has no Subject.
type Decision struct {
	Active       bool
	Subject      Subject
	Organization string
	// One for each that was asked, in that order.
	Permissions []Permission
	// By key; nil where the organization does not have it.
	Entitlements map[string]*Entitlement
}

// An Error says that nothing was decided: treat it as a denial, or answer 503. Code: pdp_unavailable, overloaded, or that of
// the PDP.
type Error struct{ Code, Message string }

func (e *Error) Error() string { return e.Message }

func unavailable(format string, parts ...any) *Error {
	return &Error{"pdp_unavailable", fmt.Sprintf(format, parts...)}
}

type outcome struct {
	found *pb.DecideResponse
	err   *Error
}

type asked struct {
	token   string
	message *pb.StreamQuestion
	answer  chan outcome // Takes one without waiting.
	sent    int
	resent  bool
}

// A Client keeps one stream to a PDP, and connects again when it is lost.
type Client struct {
	options Options
	end     context.CancelFunc
	wake    chan struct{}

	lock    sync.Mutex
	open    map[uint32]*asked
	unsent  []uint32
	last    uint32
	handles map[string]uint32
	// No handle of a stream is used twice, so none ever names another token.
	lastHandle uint32
	silent     int
	problem    string
	giveUp     context.CancelFunc
	closed     bool
}

// Connect begins to connect; questions wait for it until their deadline.
func Connect(options Options) (*Client, error) {
	if len(options.Addresses) == 0 || options.Deadline < 0 || options.OpenMax < 0 {
		return nil, errors.New("portcullis: no address, or a negative bound")
	}
	if options.Deadline == 0 {
		options.Deadline = 500 * time.Millisecond
	}
	if options.OpenMax == 0 {
		options.OpenMax = 10_000
	}
	ctx, end := context.WithCancel(context.Background())
	client := &Client{
		options: options, end: end, wake: make(chan struct{}, 1),
		open: map[uint32]*asked{}, problem: "not connected yet",
	}
	go client.run(ctx)
	return client, nil
}

// Close ends the connection. Questions that wait are refused.
func (c *Client) Close() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.closed = true
	c.end()
	for id, question := range c.open {
		delete(c.open, id)
		question.answer <- outcome{err: unavailable("the client was closed")}
	}
}

// Can is one check. False also for a token that is not active. The error is an *Error: nothing was decided.
func (c *Client) Can(ctx context.Context, token, relation, resource string) (bool, error) {
	decision, err := c.Decide(ctx, token, Question{Permissions: []Check{{relation, resource}}})
	if err != nil {
		return false, err
	}
	permission := decision.Permissions[0]
	if permission.Error != "" {
		return false, &Error{permission.Error, fmt.Sprintf("the PDP could not decide %s of %s", relation, resource)}
	}
	return permission.Allowed, nil
}

// Decide asks once. The error is an *Error: nothing was decided.
func (c *Client) Decide(ctx context.Context, token string, question Question) (*Decision, error) {
	message := &pb.StreamQuestion{
		Entitlements: question.Entitlements, RequestId: question.RequestID, ClientAddress: question.ClientAddress,
	}
	for _, check := range question.Permissions {
		message.Permissions = append(message.Permissions, &pb.PermissionCheck{Relation: check.Relation, Resource: check.Resource})
	}
	if question.Context != nil {
		text, err := json.Marshal(question.Context)
		if err != nil {
			return nil, &Error{"request_invalid", err.Error()}
		}
		message.Context = string(text)
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Deadline)
	defer cancel()
	waiting := &asked{token: token, message: message, answer: make(chan outcome, 1)}
	if err := c.add(waiting); err != nil {
		return nil, err
	}
	select {
	case got := <-waiting.answer:
		if got.err != nil {
			return nil, got.err
		}
		return read(question, got.found)
	case <-ctx.Done():
		return nil, c.late(message.Id, ctx.Err())
	}
}

func (c *Client) add(question *asked) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if question.token == "" {
		return &Error{"request_invalid", "there is no token"}
	}
	if c.closed {
		return unavailable("the client was closed")
	}
	if len(c.open) >= c.options.OpenMax {
		return &Error{"overloaded", fmt.Sprintf("%d questions wait for answers already", c.options.OpenMax)}
	}
	c.last++
	question.message.Id = c.last
	c.open[c.last] = question
	c.queue(c.last)
	return nil
}

// queue needs the lock.
func (c *Client) queue(ids ...uint32) {
	c.unsent = append(c.unsent, ids...)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Client) late(id uint32, cause error) *Error {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.open, id)
	if errors.Is(cause, context.DeadlineExceeded) {
		c.silent++
	}
	if c.silent >= silentMax && c.giveUp != nil {
		c.giveUp()
	}
	return unavailable("no PDP answered in time (%v); %s", cause, c.problem)
}

func (c *Client) run(ctx context.Context) {
	for turn, failures := 0, 0; ctx.Err() == nil; turn++ {
		answered, err := c.serve(ctx, c.options.Addresses[turn%len(c.options.Addresses)])
		c.lost(err)
		if answered {
			failures = 0
		}
		failures = min(failures+1, 10)
		longest := min(backoffMax, backoffFirst<<failures)
		select {
		case <-ctx.Done():
		case <-time.After(longest/2 + rand.N(longest/2)):
		}
	}
}

// serve is one connection from its beginning to its end; io.EOF is an end in order.
func (c *Client) serve(parent context.Context, address string) (answered bool, err error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	if c.options.Token != nil {
		token, err := c.options.Token()
		if err != nil {
			return false, err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	secure := insecure.NewCredentials()
	if c.options.TLS != nil {
		secure = credentials.NewTLS(c.options.TLS)
	}
	connection, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(secure),
		// A PDP is inside. An egress proxy would read its answers, or refuse to reach it.
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTime}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 1500 * time.Millisecond}))
	if err != nil {
		return false, err
	}
	defer connection.Close()
	kind := &grpc.StreamDesc{StreamName: "DecideStream", ServerStreams: true, ClientStreams: true}
	stream, err := connection.NewStream(ctx, kind, "/portcullis.v1.DecisionService/DecideStream")
	if err != nil {
		return false, err
	}
	c.begin(address, cancel)
	var sending sync.WaitGroup
	sending.Go(func() { c.send(ctx, stream) })
	defer sending.Wait()
	defer cancel()
	for {
		message := &pb.DecideStreamResponse{}
		if err := stream.RecvMsg(message); err != nil {
			return answered, err
		}
		answered = true
		for _, answer := range message.Answers {
			c.receive(answer)
		}
	}
}

func (c *Client) begin(address string, giveUp context.CancelFunc) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.handles, c.lastHandle, c.silent, c.giveUp, c.problem = map[string]uint32{}, 0, 0, giveUp, "connected to "+address
	c.unsent = nil
	for id := range c.open {
		c.queue(id)
	}
}

// send makes one message of whatever waits.
func (c *Client) send(ctx context.Context, stream grpc.ClientStream) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		for message := c.next(); message != nil; message = c.next() {
			// What ended the stream, its reader learns.
			if stream.SendMsg(message) != nil {
				return
			}
		}
	}
}

func (c *Client) next() *pb.DecideStreamRequest {
	c.lock.Lock()
	defer c.lock.Unlock()
	message := &pb.DecideStreamRequest{}
	for len(c.unsent) > 0 && len(message.Questions) < questionsMax {
		question := c.open[c.unsent[0]]
		c.unsent = c.unsent[1:]
		if question == nil {
			continue
		}
		handle, known := c.handles[question.token]
		if !known {
			if len(c.handles) >= tokensMax {
				clear(c.handles)
			}
			c.lastHandle++
			handle = c.lastHandle
			c.handles[question.token] = handle
			message.Tokens = append(message.Tokens, &pb.TokenHandle{Handle: handle, Token: question.token})
		}
		question.sent++
		question.message.Handle = handle
		message.Questions = append(message.Questions, question.message)
	}
	if len(message.Questions) == 0 {
		return nil
	}
	return message
}

func (c *Client) receive(answer *pb.StreamAnswer) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.silent = 0
	question := c.open[answer.Id]
	if question == nil {
		return
	}
	if answer.GetError() == "handle_unknown" && !question.resent {
		question.resent = true
		delete(c.handles, question.token)
		c.queue(answer.Id)
		return
	}
	delete(c.open, answer.Id)
	if found := answer.GetDecision(); found != nil {
		question.answer <- outcome{found: found}
	} else {
		question.answer <- outcome{err: &Error{answer.GetError(), "the PDP answered " + answer.GetError()}}
	}
}

// lost: a question only reads, so it is asked once more. At an end in order the PDP has not taken it.
func (c *Client) lost(err error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.giveUp, c.problem = nil, "the last connection ended: "+err.Error()
	overloaded := status.Code(err) == codes.ResourceExhausted
	for id, question := range c.open {
		switch {
		case errors.Is(err, io.EOF):
			question.sent = 0
		case overloaded && question.sent > 0:
			delete(c.open, id)
			question.answer <- outcome{err: &Error{"overloaded", c.problem}}
		case question.sent > 1:
			delete(c.open, id)
			question.answer <- outcome{err: unavailable("the connection was lost twice; %s", c.problem)}
		}
	}
}

func read(question Question, found *pb.DecideResponse) (*Decision, error) {
	decision := &Decision{Active: found.Active, Entitlements: map[string]*Entitlement{}}
	mismatch := found.Active && len(found.Permissions) != len(question.Permissions)
	for at, check := range question.Permissions {
		permission := Permission{Check: check}
		if found.Active && !mismatch {
			result := found.Permissions[at]
			mismatch = result.Relation != check.Relation || result.Resource != check.Resource
			permission.Allowed, permission.Error = result.Allowed && result.Error == "", result.Error
		}
		decision.Permissions = append(decision.Permissions, permission)
	}
	for _, key := range question.Entitlements {
		result, known := found.Entitlements[key]
		decision.Entitlements[key] = nil
		mismatch = mismatch || (found.Active && !known)
		if found.Active && result.GetValue() != nil {
			decision.Entitlements[key] = &Entitlement{result.Value.AsMap(), result.Version}
		}
	}
	if mismatch {
		return nil, unavailable("the answer of the PDP does not match the question")
	}
	if found.Active {
		decision.Subject = Subject{found.Subject.GetType(), found.Subject.GetId()}
		decision.Organization = found.Organization
	}
	return decision, nil
}
