//! A receiver of others, assembled as its documentation says: `easyssf-peer CONFIGURATION LISTEN`.
//! Prints one line of JSON for each event that it took.
use easyssf_receiver::config::SsfReceiverConfig;
use easyssf_receiver::event::SsfEventContext;
use easyssf_receiver::SsfReceiver;
use easyssf_receiver_axum::push_router_for;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a file with the configuration as JSON");
    let listen = arguments.next().expect("an address to listen on");
    let text = std::fs::read_to_string(file).expect("the configuration can be read");
    let config: SsfReceiverConfig = serde_json::from_str(&text).expect("the configuration is right");
    let receiver = SsfReceiver::builder(config)
        .handler(|context: SsfEventContext| async move {
            let line = serde_json::json!({
                "events": context.event_types(),
                "delivery": format!("{:?}", context.delivery_method()),
                "key": context.idempotency_key(),
            });
            println!("{line}");
            Ok(())
        })
        .build()
        .expect("the receiver is configured");
    let listener = tokio::net::TcpListener::bind(listen).await.expect("the address is free");
    receiver.start();
    axum::serve(listener, push_router_for(&receiver)).await.expect("pushes are served");
}
