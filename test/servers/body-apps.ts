/** One small application for each server: `GET /reports?org=…`, and other methods, answer with the value that the server takes for `org`. */
import { puma } from './apps.ts'
import { bottle, gin, laravel, php, rails, ruby, type Sought, spring, symfony } from './runtimes.ts'

export type BodyApp = {
  readonly name: string
  readonly seek: () => Sought
  readonly files: { readonly [name: string]: string }
  readonly args: (port: number) => readonly string[]
  /** Types of bodies whose value it takes instead of the query's, as the books say; other versions may take more. */
  readonly takes: readonly string[]
}

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

const BOTTLE = `
import sys
from bottle import request, route, run
@route('/reports', method=['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
def reports(): return 'served ' + request.params.org
run(host='127.0.0.1', port=int(sys.argv[1]), quiet=True)
`
/** Ruby's CGI in a server that lasts: what a script would find in its environment and its input. */
const RUBY_CGI = `
require 'socket'
require 'stringio'
require 'cgi'
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
while (client = server.accept)
  line = client.gets or next client.close
  method, target = line.split(' ')
  fields = {}
  while (line = client.gets) && line != "\\r\\n"
    name, value = line.chomp.split(': ', 2)
    fields[name.downcase] = value
  end
  body = client.read(fields.fetch('content-length', '0').to_i)
  ENV['REQUEST_METHOD'], ENV['QUERY_STRING'] = method, target.split('?', 2)[1]
  ENV['CONTENT_LENGTH'], ENV['CONTENT_TYPE'] = body.bytesize.to_s, fields['content-type']
  $stdin = StringIO.new(body.b)
  org = begin (CGI.new.params['org'] || []).first.to_s rescue '' end
  org = CGI.parse(ENV['QUERY_STRING'])['org'].first.to_s if org.empty?
  client.write("HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nserved #{org}")
  client.close
end
`
const GIN = `package main

import (
	"os"

	"github.com/gin-gonic/gin"
)

type question struct {
	Org string \`form:"org" json:"org" xml:"org" yaml:"org" toml:"org" codec:"org"\`
}

func main() {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Any("/reports", func(c *gin.Context) {
		var asked question
		_ = c.ShouldBindQuery(&asked)
		_ = c.ShouldBind(&asked)
		c.String(200, "served "+asked.Org)
	})
	_ = engine.Run("127.0.0.1:" + os.Args[1])
}
`
const RAILS = `
require 'logger'
require 'action_controller/railtie'
require 'rack/handler/webrick'
class Reports < ActionController::API
  def show = render(plain: "served #{params[:org]}")
end
class App < Rails::Application
  config.load_defaults 6.1
  config.eager_load = false
  config.secret_key_base = 'x' * 64
  config.logger = Logger.new(File::NULL)
  config.hosts.clear
  routes.append { match '/reports', to: 'reports#show', via: :all }
end
ReportsController = Reports
App.initialize!
Rack::Handler::WEBrick.run(App, Host: '127.0.0.1', Port: ARGV[0].to_i, AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
`
const RACK = `run lambda { |env| [200, {}, ["served #{Rack::Request.new(env).params['org']}"]] }`
const PHP = "<?php echo 'served ' . $_REQUEST['org'];"
const SYMFONY = `<?php
require '/usr/share/php/Symfony/Component/HttpFoundation/autoload.php';
$request = Symfony\\Component\\HttpFoundation\\Request::createFromGlobals();
echo 'served ' . ($request->request->get('org') ?? $request->query->get('org'));
`
const LARAVEL = `<?php
error_reporting(0);
require '/usr/share/php/Illuminate/Http/autoload.php';
echo 'served ' . Illuminate\\Http\\Request::capture()->input('org');
`
const SPRING = `package reports;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Reports {
  @RequestMapping("/reports")
  public String reports(@RequestParam String[] org) { return "served " + org[org.length - 1]; }

  public static void main(String[] args) {
    SpringApplication.run(Reports.class, "--server.address=127.0.0.1", "--server.port=" + args[0], "--spring.main.banner-mode=off");
  }
}
`
const phpArgs = (port: number): readonly string[] => ['-S', `127.0.0.1:${port}`, 'index.php']

export const BODY_APPS: readonly BodyApp[] = [
  {
    name: 'Bottle',
    seek: bottle,
    files: { 'app.py': BOTTLE },
    args: (port) => ['app.py', String(port)],
    takes: [FORM, 'text/plain', 'application/octet-stream', 'application/xml', '', JSON_TYPE],
  },
  {
    name: 'CGI of Ruby',
    seek: ruby,
    files: { 'app.rb': RUBY_CGI },
    args: (port) => ['app.rb', String(port)],
    takes: [FORM, 'text/plain', 'application/octet-stream', 'application/xml', '', JSON_TYPE],
  },
  {
    name: 'gin',
    seek: () => gin(GIN),
    files: {},
    args: (port) => [String(port)],
    takes: [FORM, JSON_TYPE, 'application/x-yaml', 'application/toml', 'application/xml', 'application/x-msgpack'],
  },
  {
    name: 'Rack',
    seek: ruby,
    files: { 'config.ru': RACK },
    args: puma,
    takes: [FORM, ''],
  },
  {
    name: 'Rails',
    seek: rails,
    files: { 'app.rb': RAILS },
    args: (port) => ['app.rb', String(port)],
    // It prefers the query.
    takes: [],
  },
  { name: 'PHP', seek: php, files: { 'index.php': PHP }, args: phpArgs, takes: [FORM] },
  { name: 'Symfony', seek: symfony, files: { 'index.php': SYMFONY }, args: phpArgs, takes: [FORM] },
  { name: 'Laravel', seek: laravel, files: { 'index.php': LARAVEL }, args: phpArgs, takes: [FORM, JSON_TYPE] },
  {
    name: 'Spring',
    seek: () => spring(SPRING),
    files: {},
    args: (port) => [String(port)],
    takes: [FORM],
  },
]
